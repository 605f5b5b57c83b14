"""What places builders on machines and reaches them: plain machines, or Ray, which programs alone import."""
