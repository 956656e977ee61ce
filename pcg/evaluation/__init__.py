"""The paper's tables over a corpus: manifests, experiments, a resumable run and a report."""
