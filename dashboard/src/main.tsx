/** The dashboard's start: theme first, then the page. */
import { render } from "preact";
import { App } from "./app/app";
import { applyTheme } from "./app/preferences";

applyTheme();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
