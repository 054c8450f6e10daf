import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openItemFile } from '../../../edge-agent/items/item-file.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { openLedger } from '../../../edge-agent/ledger/ledger.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { guardPlans } from '../../support/plan-guard.ts'

/** Statements that may read whole tables, each with the reason. */
const MAY_READ_ALL: readonly (readonly [RegExp, string])[] = [
  [/^SCAN journal: SELECT seq, hash, body FROM journal (ORDER|WHERE at_ms)/, 'once at the start, row by row'],
  [/^SCAN journal: SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1$/, 'reads one row'],
  [/: DELETE FROM \w+ WHERE (until_ms|until_s|exp|stored_ms) /, 'the housekeeping'],
  [/^SCAN (unknown_use|\w+: DELETE FROM unknown_use)/, 'few redemptions have an unknown outcome'],
  [/^SCAN home_ask: /, 'requests leave the table with their outcome'],
  [/^SCAN (pairing|pairing_link|browser): /, 'an agent has a limit of paired programs and browsers'],
  [/^SCAN product: .* ORDER BY p\.id DESC LIMIT \?/, 'reads the newest rows'],
  [/^SCAN released: /, 'expired ones are deleted, and it is read at the start'],
  [/^SCAN (label|picture): SELECT COUNT/, 'once at the start, or for each round of pictures, which have a limit'],
]

const fail = (failure: unknown) => {
  throw failure
}

it('the statements of an agent read no table as a whole', () => {
  const folder = temporaryFolder('plans')
  const guard = guardPlans()
  const ledger = openLedger({ file: join(folder, 'ledger.db'), ledgerId: 'led_1', generation: 1, onFailure: fail })
  const items = openItemFile(join(folder, 'items.db'), fail)
  items.close()
  ledger.close()
  rmSync(folder, { recursive: true })
  expect(guard.slowStatements(MAY_READ_ALL)).toEqual([])
})

it('what a till sold in an hour is read from an index alone: it may be thousands of sales', () => {
  const folder = temporaryFolder('plans')
  const db = openLedgerFile(join(folder, 'ledger.db'))
  const plan = db
    .prepare<[], { detail: string }>(
      'EXPLAIN QUERY PLAN SELECT COUNT(*), SUM(value_cent) FROM sale WHERE till_id = 1 AND hour = 1',
    )
    .all()
  db.close()
  rmSync(folder, { recursive: true })
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('COVERING INDEX sale_by_hour')])
})
