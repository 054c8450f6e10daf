import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

/** One PostgreSQL server for the whole run; '' where there is none, and the tests that need it say so. */
export default async function setup({ provide }: TestProject): Promise<(() => Promise<void>) | void> {
  const server = await startPostgres()
  provide('postgresUrl', server?.url ?? '')
  return server?.stop
}
