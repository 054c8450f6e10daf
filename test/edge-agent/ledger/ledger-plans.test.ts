import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it, vi } from 'vitest'
import { openLedger } from '../../../edge-agent/ledger/ledger.ts'
import { temporaryFolder } from '../../support/databases.ts'

// Deletions are part of the housekeeping. At most ten returns wait for a sale.
it('statements about tills use an index', () => {
  const made = vi.spyOn(Sqlite.prototype, 'prepare')
  const folder = temporaryFolder('ledger')
  const file = join(folder, 'ledger.db')
  openLedger({ file, ledgerId: 'led_1', generation: 1, onFailure: () => undefined }).close()
  const statements = [...new Set(made.mock.calls.map(([sql]) => sql))]
  made.mockRestore()
  const db = new Sqlite(file)
  const scans = statements
    .filter((sql) => /\btill_/.test(sql) && !/^\s*(INSERT|DELETE)/.test(sql))
    .map((sql) => {
      const names = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]))
      const values = Array.from({ length: sql.split('?').length - 1 }, () => 1)
      const plan = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values, names)
      return { sql, plan: plan.map(({ detail }) => detail).join(' | ') }
    })
  db.close()
  rmSync(folder, { recursive: true, force: true })
  expect(scans.length).toBeGreaterThan(10)
  expect(scans.filter(({ plan }) => /SCAN till_|(?<!waiting_return.*)TEMP B-TREE/.test(plan))).toEqual([])
})
