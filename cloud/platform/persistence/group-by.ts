/** Groups rows by a name, each group in the order of the rows. Node.js 20 has no `Map.groupBy`. */
export function groupBy<T, K>(rows: Iterable<T>, nameOf: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const row of rows) {
    const name = nameOf(row)
    const group = groups.get(name)
    if (group) group.push(row)
    else groups.set(name, [row])
  }
  return groups
}
