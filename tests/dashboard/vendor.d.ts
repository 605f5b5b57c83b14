/* What tools/vendor_xterm.py puts in place. */
export const Terminal: any;
export const FitAddon: any;
