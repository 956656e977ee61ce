"""The Gradio page: one file a tab, components with small JavaScript views; no maths lives here."""
