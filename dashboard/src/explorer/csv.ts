/** Rows as CSV (RFC 4180). Pure. */
import type { QueryRow } from "../api/query";

/**
 * A text that a spreadsheet would run as a formula gets an apostrophe before it: names and strings come from devices.
 */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  let text = typeof value === "string" ? value : JSON.stringify(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvLine = (cells: unknown[]): string => `${cells.map(csvCell).join(",")}\r\n`;

export interface CsvShape {
  fields: string[];
  /** Averages come with the least and greatest of what they average. */
  band: boolean;
  metadata: boolean;
}

export function csvHead({ fields, band, metadata }: CsvShape): string {
  const columns = fields.flatMap((field) => (band ? [field, `${field} (min)`, `${field} (max)`] : [field]));
  return csvLine(["timestamp", "source", "source_id", ...columns, ...(metadata ? ["metadata"] : [])]);
}

export function csvRows(rows: QueryRow[], shape: CsvShape, sourceName: (id: string) => string): string {
  let text = "";
  for (const row of rows) {
    const cells: unknown[] = [row.timestamp, sourceName(row.dataSourceId), row.dataSourceId];
    for (const field of shape.fields) {
      cells.push(row.values[field]);
      if (shape.band) cells.push(row.stats?.[field]?.min, row.stats?.[field]?.max);
    }
    if (shape.metadata) cells.push(row.metadata);
    text += csvLine(cells);
  }
  return text;
}
