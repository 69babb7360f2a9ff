/* Runs before MLflow's UI: what it keeps in the browser gets other defaults, which the user's own choices replace.

   - model training instead of generative AI, and no assistant that opens by itself;
   - an experiment opens on its saved view "executions", as long as that view is not changed in the browser.

   Keys and versions are those of MLflow 3.17 (its `useLocalStorage` and `ExperimentPage`). */
"use strict";
(() => {
  const VIEW = "mlflow.sharedViewState.executions";

  function initialise(key, value) {
    if (localStorage.getItem(key) === null) localStorage.setItem(key, JSON.stringify(value));
  }

  function experiments() {
    // the page reads its state as soon as it starts, so the answer is needed before
    const request = new XMLHttpRequest();
    request.open("POST", "ajax-api/2.0/mlflow/experiments/search", false);
    request.setRequestHeader("Content-Type", "application/json");
    request.send(JSON.stringify({ max_results: 1000 }));
    return request.status === 200 ? JSON.parse(request.responseText).experiments || [] : [];
  }

  function openOnView(experiment) {
    const tag = (experiment.tags || []).find(({ key }) => key === VIEW);
    if (tag === undefined) return;
    const { state, updatedAt } = JSON.parse(tag.value);
    const seen = `cursus.view.${experiment.experiment_id}`;
    if (localStorage.getItem(seen) === String(updatedAt)) return;
    const page = JSON.stringify([experiment.experiment_id]);
    localStorage.setItem(`MLflowLocalStorage-1.1-ExperimentPage-${page}-ReactComponentState`, state);
    localStorage.setItem(seen, String(updatedAt));
  }

  try {
    initialise("mlflow.workflowType_v1", "machine_learning");
    initialise("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", true);
    initialise("mlflow.assistant.panelOpen_v1", false);
    const style = document.createElement("style");
    style.textContent = '[data-assistant-ui="true"] { display: none !important }';
    document.head.append(style);
    experiments().forEach(openOnView);
  } catch (error) {
    console.warn("Cursus: MLflow opens with its own defaults.", error);
  }
})();
