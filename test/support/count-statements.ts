import Sqlite from 'better-sqlite3'

type Execute = (...parameters: unknown[]) => unknown

/** Runs `work`. Returns the number of statements that SQLite executed in this process meanwhile. */
export async function countStatements(work: () => Promise<unknown>): Promise<number> {
  const memory = new Sqlite(':memory:')
  const statement = Object.getPrototypeOf(memory.prepare('select 1')) as Record<string, Execute>
  memory.close()
  let count = 0
  const originals = ['all', 'get', 'run', 'iterate'].map((name) => [name, statement[name] as Execute] as const)
  for (const [name, execute] of originals)
    statement[name] = function (this: unknown, ...parameters) {
      count++
      return execute.apply(this, parameters)
    }
  try {
    await work()
  } finally {
    for (const [name, execute] of originals) statement[name] = execute
  }
  return count
}
