import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openTokenVoider } from '../../../edge-agent/decisions/void-tokens.ts'
import { openLedger } from '../../../edge-agent/ledger/ledger.ts'
import { letPromisesSettle, virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { temporaryFolder } from '../../support/databases.ts'

it('voids an unused token after 30 s, refuses it from then on, and keeps used steps', async () => {
  const world = virtualPlatform({ seed: 1 })
  const folder = temporaryFolder('give-up')
  const ledger = openLedger({
    file: join(folder, 'ledger.db'),
    ledgerId: 'led_1',
    generation: 1,
    onFailure: () => undefined,
  })
  const errors: unknown[] = []
  const log = { info: () => undefined, warn: () => undefined, error: (fields: object) => void errors.push(fields) }
  const tokenVoider = openTokenVoider({ ledger, timers: world.timers, nowMs: () => world.clock.wall(), log })
  const exp = Math.floor(world.clock.wall() / 1_000) + 300
  const claim = (nonce: string) =>
    ledger.claim(
      {
        redemptionId: `rdm-${nonce}`,
        source: 'token',
        nonce,
        rightClass: 'release',
        candidates: [0, 1],
        all: false,
        exp,
        deviceId: 'dev',
        nowMs: world.clock.wall(),
      },
      () => undefined,
    )
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await letPromisesSettle()
  }
  const voids = () =>
    ledger.journal.unsent(100).rows.flatMap(({ body }) => (body.evidence?.kind === 'void' ? [body.evidence.nonce] : []))

  for (const nonce of ['used', 'unused']) tokenVoider.voidUnlessUsedSoon(nonce)
  expect((await claim('used')).ok).toBe(true)
  await world.advance(29_000)
  tokenVoider.voidUnlessUsedSoon('unused')
  expect(voids()).toEqual([])
  await world.advance(1_500)
  await settle()
  expect(voids()).toEqual(['unused'])
  expect(await claim('unused')).toEqual({ ok: false, reason: 'token_revoked' })
  expect((await claim('used')).ok).toBe(true)

  // `voidNow` also voids a partly used token, once. Its row follows the claim.
  await claim('part')
  tokenVoider.voidNow('part')
  await settle()
  tokenVoider.voidNow('part')
  await settle()
  expect(voids()).toEqual(['unused', 'part'])
  expect(await claim('part')).toEqual({ ok: false, reason: 'token_revoked' })
  const rows = ledger.journal
    .unsent(100)
    .rows.filter(({ body }) => body.evidence && 'nonce' in body.evidence && body.evidence.nonce === 'part')
  expect(rows[1]?.body.atMs).toBeGreaterThan(rows[0]?.body.atMs ?? Infinity)
  expect(errors).toEqual([])
  tokenVoider.stop()
  ledger.close()
  rmSync(folder, { recursive: true, force: true })
})
