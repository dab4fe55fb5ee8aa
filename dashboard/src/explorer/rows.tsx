/**
 * The latest points of the range as a table: the place of texts, switches and metadata. Values stand behind the time, so
 * that a phone shows them.
 */
import { formatAny, formatTime, zoneName } from "../app/format";
import type { Zone } from "../app/preferences";
import type { Source } from "../api/sources";
import { TableFrame } from "../parts/page";
import type { Row } from "./fetch";
import type { FieldRef } from "./state";

interface RowsProps {
  rows: Row[];
  fields: FieldRef[];
  sources: ReadonlyMap<string, Source>;
  zone: Zone;
}

export function Rows({ rows, fields, sources, zone }: RowsProps) {
  const names = [...new Set(fields.map((ref) => ref.field))];
  const withMetadata = rows.some((row) => row.metadata !== undefined);
  const unitOf = (name: string) => {
    const units = new Set(
      fields.filter((ref) => ref.field === name).map((ref) => sources.get(ref.sourceId)?.schema[name]?.unit ?? ""),
    );
    return units.size === 1 ? [...units][0] : "";
  };
  const [newest] = rows;
  if (newest === undefined) return <p class="muted">No points in this range.</p>;
  return (
    <TableFrame label="Latest points" capped stacked>
      <thead>
        <tr>
          <th scope="col">Time ({zoneName(zone, newest.at)})</th>
          {names.map((name) => (
            <th scope="col" class="number" key={name}>
              {name} {unitOf(name) && <span class="unit">{unitOf(name)}</span>}
            </th>
          ))}
          <th scope="col">Source</th>
          {withMetadata && <th scope="col">Metadata</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row._id}>
            <td class="mono nowrap">{formatTime(row.at, zone)}</td>
            {names.map((name) => (
              <td class="number" key={name} data-label={name}>
                {formatAny(row.values[name])}
              </td>
            ))}
            <td class="name" data-label="Source">
              {sources.get(row.dataSourceId)?.name ?? row.dataSourceId}
            </td>
            {withMetadata && (
              <td class="mono metadata" data-label="Metadata">
                {row.metadata === undefined ? "" : JSON.stringify(row.metadata)}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </TableFrame>
  );
}
