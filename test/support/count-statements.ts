import Sqlite from 'better-sqlite3'

type Execute = (this: { source: string }, ...parameters: unknown[]) => unknown

/** Runs `work`. Returns the number of statements that SQLite executed in this process meanwhile. */
export async function countStatements(work: () => Promise<unknown>): Promise<number> {
  return (await statementsOf(work)).length
}

/** Runs `work`. Returns the statements that SQLite executed in this process meanwhile. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const memory = new Sqlite(':memory:')
  const statement = Object.getPrototypeOf(memory.prepare('select 1')) as Record<string, Execute>
  memory.close()
  const executed: string[] = []
  const originals = ['all', 'get', 'run', 'iterate'].map((name) => [name, statement[name] as Execute] as const)
  for (const [name, execute] of originals)
    statement[name] = function (...parameters) {
      executed.push(this.source)
      return execute.apply(this, parameters)
    }
  try {
    await work()
  } finally {
    for (const [name, execute] of originals) statement[name] = execute
  }
  return executed
}
