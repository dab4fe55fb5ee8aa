import { expect, test } from "vitest";
import { csvCell, csvHead, csvRows } from "./csv";

test.each([
  [1.5, "1.5"],
  [-3, "-3"],
  [true, "true"],
  [null, ""],
  [undefined, ""],
  ["plain", "plain"],
  ['say "hi", you', '"say ""hi"", you"'],
  ["two\nlines", '"two\nlines"'],
  ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
  ["@SUM(A1)", "'@SUM(A1)"],
  [{ a: [1] }, '"{""a"":[1]}"'],
])("%j is %s", (value, text) => expect(csvCell(value)).toBe(text));

test("averages have their band beside them", () => {
  const shape = { fields: ["v"], band: true, metadata: false };
  expect(csvHead(shape)).toBe("timestamp,source,source_id,v,v (min),v (max)\r\n");
  const rows = [
    {
      timestamp: "2026-01-01T00:00:00Z",
      dataSourceId: "s",
      values: { v: 2 },
      stats: { v: { min: 1, max: 9, count: 4 } },
    },
  ];
  expect(csvRows(rows, shape, () => "Pump, 1")).toBe('2026-01-01T00:00:00Z,"Pump, 1",s,2,1,9\r\n');
});
