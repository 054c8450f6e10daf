import type { Hono } from 'hono'
import type { Agent } from '../runtime.ts'

export function pageRoutes(app: Hono, agent: Agent): void {
  app.get('/', (c) => c.redirect('/station'))
  void agent
}
