// @ts-check
/* View: a part of the page, from when it is shown until it is left. What comes later touches nothing. */
import * as api from "./api.js";
import { replace } from "./dom.js";

export class View {
  #end = new AbortController();

  /** @param {any} place the element that it fills */
  constructor(place) {
    this.place = place;
  }

  get isOver() {
    return this.#end.signal.aborted;
  }

  show(...children) {
    if (!this.isOver) replace(this.place, ...children);
  }

  /** @param {() => void} action */
  onLeave(action) {
    this.#end.signal.addEventListener("abort", action, { once: true });
  }

  leave() {
    this.#end.abort();
  }

  /* A view inside of this one, which ends with it if not before. */
  part(place) {
    const inner = new View(place);
    this.onLeave(() => inner.leave());
    return inner;
  }

  /** The answer, as long as the view is shown: whoever awaits it goes on no more once the view is left.
   * @param {string} verb @param {Record<string, any>} [query] */
  read(verb, query) {
    return this.#only(api.read(verb, query, this.#end.signal), () => !this.isOver);
  }

  /* A `read` that forgets a question as soon as it is asked the next one. */
  newest() {
    let number = 0;
    return (verb, query) => {
      const mine = ++number;
      const { signal } = this.#end;
      return this.#only(api.read(verb, query, signal), () => !this.isOver && mine === number);
    };
  }

  #only(promise, counts) {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => counts() && resolve(value),
        (error) => counts() && reject(error),
      );
    });
  }

  /* At most once in `milliseconds`, and the last time for sure; not while nobody sees it. */
  rarely(milliseconds, action) {
    /** @type {number | undefined} */
    let timer;
    const run = () => {
      timer = undefined;
      if (!this.isOver) action();
    };
    this.onLeave(() => clearTimeout(timer));
    return () => {
      timer ??= setTimeout(run, milliseconds);
    };
  }
}
