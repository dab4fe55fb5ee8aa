/** The dashboard's start: theme and session first, then the page. */
import { render } from "preact";
import { App } from "./app/app";
import { applyTheme } from "./app/preferences";
import { resumeSession } from "./app/session";

applyTheme();
void resumeSession();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
