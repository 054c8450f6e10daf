import type { Child } from 'hono/jsx'

/** A column of a table. On a phone each row becomes a card, and `label` stands beside the value. */
export interface Column<R> {
  readonly label: string
  /** `number`: aligned to the end. `head`: names the row. `actions`: buttons. */
  readonly kind?: 'head' | 'number' | 'actions'
  cell(row: R): Child
}

/** A table. `caption` names it for screen readers. */
export function Table<R>({
  caption,
  columns,
  rows,
}: {
  caption: string
  columns: readonly Column<R>[]
  rows: readonly R[]
}) {
  return (
    <div class="table-wrap">
      <table class="cards">
        <caption class="spoken">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, kind }) => (
              <th scope="col" class={kind === 'number' || kind === 'actions' ? 'end' : undefined}>
                {kind === 'actions' ? <span class="spoken">{label}</span> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {columns.map((column) =>
                column.kind === 'head' ? (
                  <th scope="row">{column.cell(row)}</th>
                ) : (
                  <td data-label={column.label} class={classOf(column.kind)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function classOf(kind: Column<unknown>['kind']): string | undefined {
  if (kind === 'number') return 'end'
  return kind === 'actions' ? 'actions' : undefined
}

/** Rows with a text on the left and a state or a button on the right. */
export function List({ children }: { children?: Child }) {
  return <ul class="list">{children}</ul>
}
