"""What places builders on machines and reaches them: plain machines, or Ray, which only programs import."""
