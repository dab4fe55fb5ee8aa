/** The pages of boards, which come in one script of their own. */
import { useRoute } from "../app/route";
import { BoardPage } from "./board-page";
import { BoardsPage } from "./boards-page";

export { SharedPage } from "./shared-page";

export function BoardsSection() {
  const { path } = useRoute();
  return path[1] === undefined ? <BoardsPage /> : <BoardPage id={path[1]} />;
}
