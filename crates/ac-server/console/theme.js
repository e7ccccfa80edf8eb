// Before the first paint: the colours that were chosen here, if any.
try {
  document.documentElement.dataset.theme = localStorage.getItem("ac-theme") ?? "auto";
} catch {
  // No storage: the system's choice.
}
