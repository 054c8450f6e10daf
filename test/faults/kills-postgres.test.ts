// @module-tag extended
import { beforeAll, describe, expect, it } from 'vitest'
import { withMutant } from '../verification/kills/kill-mutants.ts'
import { runKills } from '../verification/kills/kills.ts'
import { whyNoPostgres } from '../verification/kills/postgres-server.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { itInFullSize } from '../support/full-size.ts'

const missing = whyNoPostgres()
/** One kill of each kind of victim. `npm run prove -- --part kills-postgres` kills every victim at every step. */
const KILLS = 4
/** Four of these kills end the database server. */
const KILLS_FOR_MUTANT = 7

const kill = (kills: number, cloudIn = {}) =>
  runKills({
    root: ROOT,
    from: 0,
    kills,
    database: 'postgres',
    cloudIn,
    bundle: bundledCommand,
    signal: new AbortController().signal,
    onKill: () => undefined,
  })

describe.skipIf(missing)(`power cuts with PostgreSQL${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  beforeAll(ensureBuilt)

  it('lose and double nothing when agent, cloud and database are killed', async () => {
    expect(await kill(KILLS)).toEqual({ kills: KILLS, violations: [] })
  })

  // A crash of the server does not always lose unflushed commits, because the server writes full pages at once.
  itInFullSize('reveal the lost write if commits are acknowledged before they are flushed', { retry: 3 }, async () => {
    const { violations } = await kill(KILLS_FOR_MUTANT, withMutant(ROOT, 'postgres-commit-not-flushed'))
    expect(violations).not.toEqual([])
  })
})
