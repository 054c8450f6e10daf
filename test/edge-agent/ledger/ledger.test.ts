import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimRequest } from '../../../edge-agent/ledger/claims/claim-request.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { openLedger, type Ledger } from '../../../edge-agent/ledger/ledger.ts'
import { recoverClaims } from '../../../edge-agent/startup/stored.ts'
import { ProtectionEvent } from '../../../policy/protection-events.ts'
import { genesisHash, JournalRow, rowHash } from '../../../policy/journal.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { randomTest } from '../../support/extended.ts'

const NOW = 1_800_000_000_000

describe('the ledger', () => {
  let folder: string
  let ledger: Ledger
  const open = () =>
    openLedger({
      file: join(folder, 'ledger.db'),
      ledgerId: 'led_1',
      generation: 1,
      onFailure: (failure) => {
        throw failure
      },
    })
  beforeEach(() => {
    folder = temporaryFolder('ledger')
    ledger = open()
  })
  afterEach(() => {
    ledger.close()
    rmSync(folder, { recursive: true, force: true })
  })

  let ids = 0
  const request = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    redemptionId: `red-${ids++}`,
    source: 'token',
    nonce: 'nonce-1',
    rightClass: 'release',
    candidates: [0],
    all: false,
    exp: NOW / 1_000 + 300,
    deviceId: 'dev_1',
    nowMs: NOW,
    ...change,
  })
  const claim = (change: Partial<ClaimRequest> = {}) => ledger.claim(request(change), () => undefined)
  const reopen = () => {
    ledger.close()
    ledger = open()
  }

  it('opens after any use, and refuses a file in which one bit of a claim or of the journal was flipped', async () => {
    await claim({ receipt: { cti: 'cti-1', ordinals: [4] }, tag: { epc: 'AAAA' } })
    const failed = request({ nonce: 'nonce-2' })
    await ledger.claim(failed, () => undefined)
    await ledger.settle(failed.redemptionId, 'failed', NOW)
    await claim({ nonce: 'nonce-2' })
    const done = request({ nonce: 'cti-3', source: 'receipt', all: true, candidates: [0, 1] })
    await ledger.claim(done, () => undefined)
    await ledger.settle(done.redemptionId, 'confirmed', NOW)
    await claim({ source: 'item', nonce: 'x', tag: { tagId: 'HT-1' } })
    reopen()
    const file = join(folder, 'ledger.db')
    const flip = (text: string) => {
      const at = Math.floor(text.length / 2)
      return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1)
    }
    const columns = [
      ['claim', 'nonce'],
      ['claim', 'right_class'],
      ['claim', 'state'],
      ['used_right', 'cti'],
      ['journal', 'body'],
      ['journal', 'hash'],
    ]
    for (const [table, column] of columns) {
      ledger.close()
      const db = new Sqlite(file)
      const where = table === 'used_right' ? "WHERE cti NOT LIKE 'tag:%'" : table === 'journal' ? 'WHERE seq = 2' : ''
      const { value } = db.prepare(`SELECT ${column} AS value FROM ${table} ${where} LIMIT 1`).get() as {
        value: string
      }
      const set = db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ?`)
      set.run(flip(value), value)
      db.close()
      expect(() => openLedgerFile(file), `${table}.${column}`).toThrow(/is damaged/)
      const back = new Sqlite(file)
      back.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ?`).run(value, flip(value))
      back.close()
      ledger = open()
    }
  })

  it('rejects a claim for an abandoned home request, with or without its answer', async () => {
    const wish = {
      home: 'agt_2',
      homeEpoch: 1,
      cti: 'cti',
      rightClass: 'exit' as const,
      candidates: [0],
      exp: NOW / 1_000 + 300,
    }
    const shown = { source: 'receipt' as const, nonce: 'cti', rightClass: 'exit' as const }
    const ask = (id: string) => ledger.commits.durably(() => ledger.homeRequests.begin(id, id, wish))
    await ask('late')
    await ledger.commits.durably(() => ledger.homeRequests.abandon('late'))
    // The agent reports to the home that the rights are unused, and the home may grant them to other agents.
    expect(await claim({ ...shown, homeRequestId: 'late', isolated: { limit: 20 } })).toEqual({
      ok: false,
      reason: 'already_redeemed',
    })
    expect(await claim({ ...shown, homeRequestId: 'late', redemptionId: 'late' })).toEqual({
      ok: false,
      reason: 'already_redeemed',
    })
    await ledger.commits.durably(() => ledger.homeRequests.noteDelivered('late'))
    expect(await claim({ ...shown, homeRequestId: 'late', isolated: { limit: 20 } })).toMatchObject({ ok: false })
    await ask('again')
    expect(await claim({ ...shown, homeRequestId: 'again', isolated: { limit: 20 } })).toMatchObject({ ok: true })
  })

  it('grants one of 64 concurrent claims, and rejects the others also after a restart', async () => {
    const answers = await Promise.all(Array.from({ length: 64 }, () => claim()))
    expect(answers.filter((a) => a.ok)).toHaveLength(1)
    expect(answers.filter((a) => !a.ok && a.reason === 'already_redeemed')).toHaveLength(63)
    reopen()
    expect(await claim()).toEqual({ ok: false, reason: 'already_redeemed' })
  })

  it('claims each step of a token once', async () => {
    const steps = { candidates: [0, 1, 2] }
    expect(await claim(steps)).toEqual({ ok: true, ordinals: [0], remaining: 2 })
    expect(await claim(steps)).toEqual({ ok: true, ordinals: [1], remaining: 1 })
    expect(await claim({ ...steps, all: true })).toEqual({ ok: true, ordinals: [2], remaining: 0 })
    expect(await claim(steps)).toMatchObject({ ok: false })
  })

  randomTest('uses each right once, in any order of tokens and receipts', { few: 40, many: 150 }, async (numRuns) => {
    const step = fc.record({
      kind: fc.constantFrom('token-a', 'token-b', 'receipt'),
      outcome: fc.constantFrom('confirmed', 'failed', 'unknown', 'none'),
      restart: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), fc.nat(), async (steps, seed) => {
        const cti = `cti-${seed}-${ids}`
        const used = new Map<number, number>()
        for (const { kind, outcome, restart } of steps) {
          const redemptionId = `red-${ids++}`
          const own =
            kind === 'receipt'
              ? { source: 'receipt' as const, nonce: cti }
              : { nonce: `${cti}-${kind}`, receipt: { cti, ordinals: [0, 1] } }
          const claimed = await claim({ ...own, redemptionId, candidates: [0, 1] })
          if (claimed.ok) {
            // Only after `failed` it is certain that the device did not move.
            for (const ordinal of claimed.ordinals)
              if (outcome !== 'failed') used.set(ordinal, (used.get(ordinal) ?? 0) + 1)
            if (outcome !== 'none') await ledger.settle(redemptionId, outcome, NOW)
          }
          if (restart) reopen()
        }
        for (const count of used.values()) expect(count).toBe(1)
      }),
      { numRuns },
    )
  })

  /** The cloud acknowledges all rows at this time, s. */
  const acknowledge = (atS: number) =>
    ledger.commits.now(() => {
      const { seq, hash } = ledger.journal.head
      expect(ledger.journal.acknowledge(seq, hash)).toBe(true)
      ledger.claims.noteAcknowledged(seq, atS)
    })

  const FREED = 'frees an unresolved redemption only for staff, or for a token of a cloud that knew of it'
  randomTest(FREED, { few: 60, many: 300 }, async (numRuns) => {
    const platform = virtualPlatform()
    const step = fc.record({
      kind: fc.constantFrom(
        'shown token',
        'fetched token',
        'receipt',
        'receipt',
        'delegated',
        'acknowledged',
        'told of others',
        'begun anew',
      ),
      outcome: fc.constantFrom(
        'confirmed' as const,
        'failed' as const,
        'unknown' as const,
        'unknown' as const,
        'none' as const,
      ),
      operator: fc.boolean(),
      isOld: fc.boolean(),
      restart: fc.boolean(),
    })
    let generation = 1
    let nowS = NOW / 1_000
    let goneOn = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 16 }), async (steps) => {
        const cti = `go-on-${ids++}`
        /**
         * Model of the right: its redemptions by this agent and others. `toldS`: when the cloud acknowledged the
         * outcome.
         */
        const uses: { outcome: string; agentId: string; toldS: number }[] = []
        let isOfOthers = false

        async function take(kind: string, operator: boolean, isOld: boolean, redemptionId: string): Promise<void> {
          const isReceipt = kind === 'receipt' || kind === 'delegated'
          const issuedS = nowS - (isOld ? 15 : 0)
          const asker = kind !== 'delegated' ? 'itself' : isOld ? 'agt_2' : 'agt_3'
          // After `unknown` only the same agent may request the right again, because its staff approve that.
          const isForStaff = (agentId: string) => (kind === 'delegated' ? agentId === asker : operator)
          const mayGoOn = ({ outcome, agentId, toldS }: (typeof uses)[0]) =>
            outcome === 'failed' || (outcome === 'unknown' && (isForStaff(agentId) || (!isReceipt && issuedS > toldS)))
          const isFree = uses.every(mayGoOn) && !(isReceipt && isOfOthers)
          const right = { redemptionId, exp: nowS + 100, nowMs: nowS * 1_000 }
          const token = {
            nonce: redemptionId,
            receipt: { cti, ordinals: [0] },
            issuedS,
            ...(kind === 'fetched token' && { reportedSeq: ledger.journal.acked }),
          }
          const isTaken =
            kind === 'delegated'
              ? ledger.commits.now(() =>
                  ledger.homeGrants.grant({
                    ...right,
                    agentId: asker,
                    homeEpoch: 1,
                    cti,
                    rightClass: 'release',
                    candidates: [0],
                    all: false,
                  }),
                )?.ordinals.length === 1
              : (
                  await claim({
                    ...right,
                    ...(isReceipt ? { source: 'receipt' as const, nonce: cti } : token),
                    ...(operator && { operatorId: 'op_1' }),
                  })
                ).ok
          // After two failures only staff may try again, so the ledger may reject a free right.
          if (isTaken || uses.every(({ outcome }) => outcome !== 'failed')) expect(isTaken).toBe(isFree)
          if (!isTaken) return
          if (uses.some(({ outcome }) => outcome === 'unknown')) goneOn++
          uses.push({ outcome: 'none', agentId: asker, toldS: Infinity })
        }

        for (const { kind, outcome, operator, isOld, restart } of steps) {
          nowS += 10
          const redemptionId = `red-${ids++}`
          const before = uses.length
          if (kind === 'acknowledged') {
            acknowledge(nowS)
            for (const use of uses)
              if (use.agentId === 'itself' && use.outcome === 'unknown') use.toldS = Math.min(use.toldS, nowS)
          } else if (kind === 'begun anew') ledger.startGeneration(++generation, () => undefined)
          else if (kind === 'told of others') {
            ledger.commits.now(() =>
              ledger.claims.redeemElsewhere({ cti, rightClass: 'release', ordinals: [0], until: nowS + 86_400 }),
            )
            isOfOthers = true
          } else await take(kind, operator, isOld, redemptionId)
          const use = uses[before]
          if (use && outcome !== 'none') {
            if (use.agentId === 'itself') await ledger.settle(redemptionId, outcome, nowS * 1_000)
            else if (outcome !== 'confirmed')
              ledger.commits.now(() =>
                ledger.homeGrants.noteOutcome({
                  agentId: use.agentId,
                  redemptionId,
                  outcome,
                  candidates: [0],
                  report: 'report',
                  isOwnEpoch: true,
                  exp: nowS + 100,
                  nowMs: nowS * 1_000,
                }),
              )
            use.outcome = outcome
          }
          if (!restart) continue
          reopen()
          recoverClaims(ledger, 'st_1', nowS * 1_000, platform)
          for (const each of uses) if (each.agentId === 'itself' && each.outcome === 'none') each.outcome = 'unknown'
        }
      }),
      { numRuns },
    )
    expect(goneOn).toBeGreaterThan(numRuns / 6)
  })

  it('keeps a redemption unresolved if the cloud that knew of it was restored since', async () => {
    await claim({ nonce: 'a', redemptionId: 'unknown', receipt: { cti: 'cti', ordinals: [0] } })
    await ledger.settle('unknown', 'unknown', NOW)
    const next = (change: Partial<ClaimRequest>) =>
      claim({ receipt: { cti: 'cti', ordinals: [0] }, issuedS: NOW / 1_000 + 100, ...change })
    acknowledge(NOW / 1_000)
    ledger.commits.now(() => ledger.journal.resendAll())
    ledger.startGeneration(2, () => undefined)
    // The cloud acknowledges the first of two rows.
    ledger.commits.now(() => ledger.claims.noteAcknowledged(1, NOW / 1_000 + 1))
    expect(await next({ nonce: 'b' })).toEqual({ ok: false, reason: 'already_redeemed' })
    acknowledge(NOW / 1_000 + 200)
    expect(await next({ nonce: 'b' })).toEqual({ ok: false, reason: 'already_redeemed' })
    // The token is from the second of the acknowledgement. So only `reportedSeq` proves that the cloud had the row
    // before.
    expect(await next({ nonce: 'b', issuedS: NOW / 1_000 + 200 })).toMatchObject({ ok: false })
    expect(await next({ nonce: 'b', issuedS: NOW / 1_000 + 200, reportedSeq: 1 })).toMatchObject({ ok: false })
    expect(await next({ nonce: 'b', issuedS: NOW / 1_000 + 200, reportedSeq: 2 })).toMatchObject({ ok: true })
  })

  it('frees a failed receipt right for one retry, then, and after `unknown`, only for an operator', async () => {
    const receipt = { source: 'receipt' as const, nonce: 'cti' }
    for (const n of [1, 2]) {
      const redemptionId = `try-${n}`
      expect(await claim({ ...receipt, redemptionId })).toMatchObject({ ok: true })
      expect(await claim(receipt)).toMatchObject({ ok: false })
      await ledger.settle(redemptionId, 'failed', NOW)
    }
    expect(await claim(receipt)).toEqual({ ok: false, reason: 'already_redeemed' })
    expect(await claim({ ...receipt, operatorId: 'op_1', redemptionId: 'by-staff' })).toMatchObject({ ok: true })
    await ledger.settle('by-staff', 'unknown', NOW)
    expect(await claim(receipt)).toMatchObject({ ok: false })
    expect(await claim({ ...receipt, operatorId: 'op_1' })).toMatchObject({ ok: true })
  })

  it('uses up a token’s step with any outcome', async () => {
    expect(await claim({ redemptionId: 'one' })).toMatchObject({ ok: true })
    await ledger.settle('one', 'failed', NOW)
    expect(await claim()).toEqual({ ok: false, reason: 'already_redeemed' })
  })

  it('rejects rights that were denied or used elsewhere', async () => {
    ledger.commits.now(() => {
      ledger.claims.deny('nonce-1', NOW / 1_000 + 400)
      ledger.claims.redeemElsewhere({ cti: 'cti', rightClass: 'release', ordinals: [0], until: NOW / 1_000 + 10 })
    })
    expect(await claim()).toEqual({ ok: false, reason: 'token_revoked' })
    expect(await claim({ source: 'receipt', nonce: 'cti' })).toEqual({ ok: false, reason: 'already_redeemed' })
    expect(await claim({ source: 'receipt', nonce: 'cti', nowMs: NOW + 11_000 })).toMatchObject({ ok: true })
    ledger.commits.now(() => ledger.claims.deny('cti-2', NOW / 1_000 + 400))
    expect(await claim({ nonce: 'token', receipt: { cti: 'cti-2', ordinals: [0] } })).toEqual({
      ok: false,
      reason: 'token_revoked',
    })
  })

  it('counts isolated claims in the transaction of the claim, until an acknowledgement covers them', async () => {
    const isolated = { source: 'receipt' as const, isolated: { limit: 2 } }
    expect(await claim({ ...isolated, nonce: 'a' })).toMatchObject({ ok: true })
    expect(await claim({ ...isolated, nonce: 'a' })).toMatchObject({ reason: 'already_redeemed' })
    const before = ledger.journal.head.seq
    expect(await claim({ ...isolated, nonce: 'b' })).toMatchObject({ ok: true })
    expect(await claim({ ...isolated, nonce: 'c' })).toEqual({ ok: false, reason: 'limit_exceeded' })
    reopen()
    ledger.commits.now(() => ledger.claims.noteAcknowledged(before))
    expect(await claim({ ...isolated, nonce: 'c' })).toEqual({ ok: false, reason: 'limit_exceeded' })
    ledger.commits.now(() => ledger.claims.noteAcknowledged(ledger.journal.head.seq))
    expect(await claim({ ...isolated, nonce: 'c' })).toMatchObject({ ok: true })
  })

  it('counts a receipt once, however many of its units are released, until the cloud has acknowledged them', async () => {
    const isolated = { source: 'receipt' as const, isolated: { limit: 2 } }
    const units = Array.from({ length: 15 }, (_, n) => n)
    for (const nonce of ['a', 'b'])
      for (const ordinal of units)
        expect(await claim({ ...isolated, nonce, candidates: [ordinal] })).toMatchObject({ ok: true })
    expect(ledger.claims.isolatedCount).toBe(2)
    expect(await claim({ ...isolated, nonce: 'c' })).toEqual({ ok: false, reason: 'limit_exceeded' })
    reopen()
    expect([ledger.claims.isHonoured('b'), ledger.claims.isHonoured('c')]).toEqual([true, false])
    acknowledge(NOW / 1_000)
    expect([ledger.claims.isHonoured('b'), ledger.claims.isolatedCount]).toEqual([false, 0])
    expect(await claim({ ...isolated, nonce: 'c' })).toMatchObject({ ok: true })
  })

  it('counts isolated claims again while their rows are sent again after a withdrawn acknowledgement', async () => {
    const isolated = { source: 'receipt' as const, isolated: { limit: 3 } }
    for (const nonce of ['a', 'b']) expect(await claim({ ...isolated, nonce })).toMatchObject({ ok: true })
    acknowledge(NOW / 1_000)
    expect(await claim({ ...isolated, nonce: 'c' })).toMatchObject({ ok: true })
    const { seq } = ledger.journal.head
    ledger.commits.now(() => ledger.claims.resetAcknowledged(0))
    expect(await claim({ ...isolated, nonce: 'd' })).toEqual({ ok: false, reason: 'limit_exceeded' })
    ledger.commits.now(() => ledger.claims.noteAcknowledged(seq))
    expect(await claim({ ...isolated, nonce: 'd' })).toMatchObject({ ok: true })
    acknowledge(NOW / 1_000)
    ledger.commits.now(() => ledger.claims.resetAcknowledged(ledger.journal.head.seq))
    expect(ledger.claims.isolatedCount).toBe(0)
  })

  it('resets isolated claims by acknowledgement also after the rows were renumbered', async () => {
    for (let i = 0; i < 50; i++) await ledger.record({ atMs: NOW })
    acknowledge(NOW / 1_000)
    const isolated = { source: 'receipt' as const, isolated: { limit: 2 } }
    for (const nonce of ['a', 'b']) expect(await claim({ ...isolated, nonce })).toMatchObject({ ok: true })
    ledger.startGeneration(2, () => undefined)
    const first = ledger.journal.unsent(1).rows[0]
    ledger.commits.now(() => ledger.claims.noteAcknowledged(first?.seq ?? 0))
    expect(await claim({ ...isolated, nonce: 'c' })).toEqual({ ok: false, reason: 'limit_exceeded' })
    acknowledge(NOW / 1_000)
    expect(await claim({ ...isolated, nonce: 'c' })).toMatchObject({ ok: true })
  })

  it('limits the approvals of one operator per hour', async () => {
    const approval = { operatorId: 'op_1', limit: 2 }
    for (const nonce of ['a', 'b']) expect(await claim({ nonce, approval })).toMatchObject({ ok: true })
    expect(await claim({ nonce: 'c', approval })).toEqual({ ok: false, reason: 'limit_exceeded' })
    expect(await claim({ nonce: 'c', approval: { ...approval, operatorId: 'op_2' } })).toMatchObject({ ok: true })
    expect(await claim({ nonce: 'd', approval, nowMs: NOW + 3_600_001 })).toMatchObject({ ok: true })
  })

  it('rejects tokens and receipts that ended before the last pruning, at any clock time', async () => {
    await claim()
    await ledger.settle('x', 'confirmed', NOW)
    ledger.commits.now(() => ledger.claims.settle(`red-${ids - 1}`, 'confirmed'))
    ledger.commits.now(() => ledger.claims.prune(NOW / 1_000 + 300))
    expect(ledger.claims.claimedSteps('nonce-1')).toBe(0)
    expect(await claim({ nowMs: 0 })).toEqual({ ok: false, reason: 'token_expired' })
    expect(await claim({ nonce: 'later', exp: NOW / 1_000 + 301 })).toMatchObject({ ok: true })
  })

  it('prunes expired receipts and tokens, with their delegated rights and unresolved redemptions', async () => {
    const [exp, cti] = [NOW / 1_000 + 300, 'c'.repeat(32)]
    const given = {
      homeEpoch: 1,
      agentId: 'agt_2',
      redemptionId: 'delegated',
      cti,
      rightClass: 'release' as const,
      candidates: [0, 1],
      all: true,
      exp,
      nowMs: NOW,
    }
    ledger.commits.now(() => {
      expect(ledger.homeGrants.grant(given)).toMatchObject({ ordinals: [0, 1] })
      ledger.homeGrants.noteOutcome({
        agentId: 'agt_2',
        redemptionId: 'delegated',
        outcome: 'unknown',
        candidates: [0, 1],
        report: 'report',
        isOwnEpoch: true,
        exp,
        nowMs: NOW,
      })
    })
    await claim({ redemptionId: 'mine', receipt: { cti, ordinals: [2] } })
    await ledger.settle('mine', 'unknown', NOW)
    const rows = (table: string) => {
      const db = new Sqlite(join(folder, 'ledger.db'), { readonly: true })
      const { n } = db.prepare(`SELECT COUNT(*) AS n FROM ${table}`).get() as { n: number }
      db.close()
      return n
    }
    const tidy = (seconds: number) =>
      ledger.commits.now(() => {
        ledger.claims.prune(exp + seconds)
        ledger.homeGrants.prune(exp + seconds)
      })
    tidy(-1)
    expect([rows('claim'), rows('used_right'), rows('home_grant'), rows('unknown_use')]).toEqual([1, 3, 1, 2])
    expect(ledger.claims.isFree(cti, 'release', 0, NOW, false)).toBe(false)
    expect(ledger.claims.isFree(cti, 'release', 2, NOW, true)).toBe(true)
    tidy(2 * 86_400)
    tidy(2 * 86_400 + 600)
    expect([rows('claim'), rows('used_right'), rows('home_grant'), rows('unknown_use')]).toEqual([0, 0, 0, 0])
  })

  it('forwards outcome reports about its own or lost grants, and none about another home or other units', () => {
    const about = { agentId: 'agt_2', outcome: 'failed' as const, exp: NOW / 1_000 + 300, nowMs: NOW }
    const given = { cti: 'cti', rightClass: 'exit' as const, candidates: [0, 1], all: true, homeEpoch: 3 }
    const forwarded = () =>
      ledger.journal
        .unsent(100)
        .rows.flatMap(({ body: { evidence } }) =>
          evidence?.kind === 'delegation_returned' ? [[evidence.redemptionId, evidence.report]] : [],
        )
    ledger.commits.now(() => {
      const { agentId, exp, nowMs } = about
      ledger.homeGrants.grant({ ...given, agentId, exp, nowMs, redemptionId: 'known' })
      const reportFailed = (redemptionId: string, candidates: number[], isOwnEpoch: boolean) =>
        ledger.homeGrants.noteOutcome({ ...about, redemptionId, candidates, isOwnEpoch, report: `of ${redemptionId}` })
      reportFailed('of another home', [0], false)
      reportFailed('forgotten', [0], true)
      reportFailed('known', [0], true)
    })
    expect(forwarded()).toEqual([['forgotten', 'of forgotten']])
    expect(ledger.claims.isFree('cti', 'exit', 0, NOW, false)).toBe(false)
    ledger.commits.now(() =>
      ledger.homeGrants.noteOutcome({
        ...about,
        redemptionId: 'known',
        candidates: [0, 1],
        isOwnEpoch: false,
        report: 'of known',
      }),
    )
    expect(forwarded().at(-1)).toEqual(['known', 'of known'])
    expect(ledger.claims.isFree('cti', 'exit', 0, NOW, false)).toBe(true)
  })

  it('reports a failed release to the home although other units of the receipt are released', async () => {
    const given = (id: string, asked: readonly number[], ordinal: number) => {
      const wish = {
        home: 'agt_home',
        homeEpoch: 1,
        cti: 'cti-1',
        rightClass: 'release' as const,
        candidates: asked,
        exp: NOW / 1_000 + 300,
      }
      ledger.commits.now(() => ledger.homeRequests.begin(`dev ${id}`, id, wish))
      return claim({
        redemptionId: id,
        source: 'receipt',
        nonce: 'cti-1',
        candidates: [ordinal],
        all: true,
        homeRequestId: id,
      })
    }
    expect(await given('red_a', [0, 1, 2], 0)).toMatchObject({ ok: true })
    expect(await given('red_b', [1, 2], 1)).toMatchObject({ ok: true })
    await ledger.settle('red_b', 'confirmed', NOW)
    await ledger.settle('red_a', 'failed', NOW)
    expect(ledger.homeRequests.dueReports()).toMatchObject([{ redemptionId: 'red_a', outcome: 'failed' }])
  })

  it('chains its rows, also after restarts, and sends them until they are acknowledged on the same chain', async () => {
    await claim({ nonce: 'a' })
    await ledger.record({ atMs: NOW })
    reopen()
    await ledger.record({ atMs: NOW + 1 })
    const { after, rows } = ledger.journal.unsent(10)
    expect(after).toBe(genesisHash('led_1', 1))
    expect(rows.map((r) => r.seq)).toEqual([1, 2, 3])
    let previous = after
    for (const row of rows) {
      expect(row.hash).toBe(rowHash(previous, row.seq, JSON.stringify(row.body)))
      previous = row.hash
    }
    const ack = (seq: number, hash: string) => ledger.commits.now(() => ledger.journal.acknowledge(seq, hash))
    expect(ack(2, 'wrong')).toBe(false)
    expect(ack(9, previous)).toBe(false)
    expect(ack(2, rows[1]?.hash ?? '')).toBe(true)
    expect(ack(1, rows[0]?.hash ?? '')).toBe(true)
    expect(ledger.journal.waiting).toBe(1)
    reopen()
    expect(ledger.journal.unsent(10)).toMatchObject({ after: rows[1]?.hash, rows: [{ seq: 3 }] })
    ledger.journal.prune(NOW + 86_400_000)
    expect(ledger.journal.unsent(10)).toMatchObject({ after: rows[1]?.hash, rows: [{ seq: 3 }] })
    expect(ack(3, previous)).toBe(true)
    expect(ledger.journal.waiting).toBe(0)
  })

  it('counts the bytes of rows that wait, also after a restart', async () => {
    const sizeOf = (from: number) =>
      ledger.journal.unsent(100, from).rows.reduce((sum, { body }) => sum + Buffer.byteLength(JSON.stringify(body)), 0)
    const isCounted = () => expect(ledger.journal.waitingBytes).toBe(sizeOf(ledger.journal.acked))
    isCounted()
    for (const text of ['ä', '€'.repeat(20_000), 'x']) {
      await ledger.record({ atMs: NOW, event: alarm({ detail: text.slice(0, 300) }) })
      isCounted()
    }
    const [, second] = ledger.journal.unsent(10).rows
    ledger.commits.now(() => ledger.journal.acknowledge(2, second?.hash ?? ''))
    ledger.journal.prune(NOW + 86_400_000)
    isCounted()
    await ledger.record({ atMs: NOW })
    await expect(
      ledger.commits.durably(() => {
        ledger.journal.append({ atMs: NOW })
        throw new Error('undone')
      }),
    ).rejects.toThrow()
    isCounted()
    reopen()
    isCounted()
  })

  const alarm = (change: object = {}) =>
    ({
      type: 'protection.exception.raised',
      eventId: 'evt_1',
      occurredAt: new Date(NOW).toISOString(),
      storeId: 'st_1',
      deviceId: 'dev_1',
      reason: 'gate_alarm',
      ...change,
    }) as ProtectionEvent
  const unsentBodies = () => ledger.journal.unsent(1_000).rows.map(({ body }) => body)

  it('stores a valid event unchanged, and shortens its texts without notice', async () => {
    await ledger.record({ atMs: NOW, event: alarm({ epc: 'AB'.repeat(62) }) })
    await ledger.record({
      atMs: NOW,
      event: alarm({ reason: 'r'.repeat(70), detail: `${'d'.repeat(299)}\u{1f6aa}\0` }),
    })
    expect(unsentBodies()).toEqual([
      { atMs: NOW, event: alarm({ epc: 'AB'.repeat(62) }) },
      { atMs: NOW, event: alarm({ reason: 'r'.repeat(60), detail: `${'d'.repeat(299)}\ufffd` }) },
    ])
  })

  it('removes invalid fields of an event, and adds an event for staff about that', async () => {
    const evidence = { kind: 'outcome', redemptionId: 'r', outcome: 'confirmed' } as const
    await ledger.record({ atMs: NOW, evidence, event: alarm({ epc: 'AB'.repeat(75), tagId: '', offline: true }) })
    const [whole, word] = unsentBodies()
    expect(whole).toEqual({ atMs: NOW, evidence, event: alarm({ offline: true }) })
    expect(word?.event).toMatchObject({
      type: 'protection.exception.raised',
      storeId: 'st_1',
      deviceId: 'dev_1',
      reason: 'event_incomplete',
      detail: expect.stringMatching(/^gate_alarm evt_1 was reported without epc \(150 characters: ABAB.*tagId/),
    })
    expect(word?.event?.eventId).not.toBe('evt_1')
    expect(unsentBodies()).toHaveLength(2)
  })

  randomTest('stores only events that the cloud accepts, for any input', { few: 100, many: 300 }, async (numRuns) => {
    // `fc.string` with binary units indexes all of Unicode, which takes a second.
    const anyText = fc.array(fc.nat(0x10_ff_ff)).map((points) => String.fromCodePoint(...points))
    const junk = fc.dictionary(
      fc.constantFrom(...Object.keys(ProtectionEvent.shape), 'colour', 'x'.repeat(300)),
      fc.oneof(anyText, fc.constant('A'.repeat(5_000)), fc.anything()),
      { maxKeys: 8 },
    )
    await fc.assert(
      fc.asyncProperty(junk, async (change) => {
        const before = ledger.journal.head.seq
        await ledger.record({ atMs: NOW, event: alarm(change) })
        const { rows } = ledger.journal.unsent(1_000, before)
        expect([1, 2]).toContain(rows.length)
        for (const row of rows) expect(JournalRow.safeParse(row).error?.issues).toBeUndefined()
      }),
      { numRuns },
    )
  })

  it('sends the valid fields of older rows after a change of generation', async () => {
    await ledger.record({ atMs: NOW, event: alarm() })
    const db = new Sqlite(join(folder, 'ledger.db'))
    const bad = JSON.stringify({ atMs: NOW, event: alarm({ epc: 'AB'.repeat(75) }) })
    db.prepare('INSERT INTO journal (seq, hash, body, at_ms) VALUES (2, ?, ?, ?)').run(
      rowHash(ledger.journal.head.hash, 2, bad),
      bad,
      NOW,
    )
    db.close()
    reopen()
    expect(unsentBodies()[1]?.event?.epc).toHaveLength(150)
    ledger.startGeneration(2, () => undefined)
    expect(unsentBodies().map(({ event }) => event?.reason)).toEqual(['gate_alarm', 'gate_alarm', 'event_incomplete'])
    expect(unsentBodies()[1]?.event).toEqual(alarm())
    expect(ledger.journal.unsent(1).after).toBe(genesisHash('led_1', 2))
  })

  it('turns claims without outcome into `unknown` after a crash, reports that once, and frees no right', async () => {
    await claim({ nonce: 'crashed' })
    await claim({ nonce: 'fine', redemptionId: 'fine' })
    await ledger.settle('fine', 'confirmed', NOW)
    reopen()
    const platform = virtualPlatform()
    expect(recoverClaims(ledger, 'st_1', NOW, platform)).toBe(1)
    expect(recoverClaims(ledger, 'st_1', NOW, platform)).toBe(0)
    const { rows } = ledger.journal.unsent(10)
    expect(rows.at(-1)?.body).toMatchObject({
      evidence: { kind: 'outcome', outcome: 'unknown' },
      event: { type: 'protection.action.failed', reason: 'power_loss' },
    })
    expect(await claim({ nonce: 'crashed' })).toMatchObject({ ok: false })
  })

  it('sets synchronous=FULL on each open, and rejects a damaged or newer file', async () => {
    const { openLedgerFile } = await import('../../../edge-agent/ledger/file/ledger-file.ts')
    ledger.close()
    const file = join(folder, 'ledger.db')
    const again = openLedgerFile(file)
    expect(again.pragma('synchronous', { simple: true })).toBe(2)
    again.close()
    const raw = new Sqlite(file)
    raw.pragma('user_version = 99')
    raw.close()
    expect(() => openLedgerFile(file)).toThrow(/newer release of untag/)
    const back = new Sqlite(file)
    back.pragma('user_version = 1')
    back.close()
    ledger = open()
  })
})
