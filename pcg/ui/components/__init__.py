"""Components of the page: `gr.HTML` subclasses whose views are the scripts in `assets/web`."""
