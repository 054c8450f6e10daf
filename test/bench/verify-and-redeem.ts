import { join } from 'node:path'
import { realPlatform } from '../../host/platform.ts'
import { openLedger, type Ledger } from '../../edge-agent/ledger/ledger.ts'
import { openAuthorization } from '../../policy/documents/authorization.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { costsAtMost, ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from './figure.ts'
import { takeTurns, wallTime, type Contender } from './measure.ts'
import { bareTable, type BareTable } from './peers/bare-table.ts'
import { bareVerify, signedBytes } from './peers/bare-verify.ts'
import { LEDGER, tokenSource, type TokenSource } from './tokens.ts'

const IN_FLIGHT = 64
const platform = realPlatform()
const NAMES = {
  bareTogether: `bare verify + bare insert, ${IN_FLIGHT} a commit`,
  together: `openAuthorization + claim, ${IN_FLIGHT} in flight`,
  togetherOffline: `the same with the event of an offline redemption`,
  bareAlone: 'bare verify + bare insert, one a commit',
  alone: 'openAuthorization + claim, one by one',
}
/**
 * Targets: minimum ratio to the bare rate with many claims at the same time, and maximum ratio to the bare cost with
 * one claim at a time.
 */
const SHARE = 0.7
const LIMIT = 1.5

type EventOf = (nonce: string) => ProtectionEvent | undefined

const SIZES = {
  full: { batches: 20, rounds: 15, roundsAlone: 200, warmUpsAlone: 10 },
  quick: { batches: 10, rounds: 7, roundsAlone: 75, warmUpsAlone: 10 },
  smoke: { batches: 1, rounds: 1, roundsAlone: 1, warmUpsAlone: 0 },
} satisfies Sizes

/** Measures verification and durable claim of a token at the agent. */
export const verifyAndRedeem: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random }: Bench): Promise<Result> {
  const { batches, rounds, roundsAlone, warmUpsAlone } = SIZES[mode]
  const source = tokenSource(random)
  const bare = bareTable(join(folder, 'bare.db'))
  const ledger = openLedger({
    file: join(folder, 'ledger.db'),
    ...LEDGER,
    onFailure: (failure) => {
      throw failure
    },
  })
  const many = IN_FLIGHT * batches
  // Small slices in many rounds, so that a disk load by other programs affects both contenders.
  const few = 10
  const together: Contender[] = [
    { name: NAMES.bareTogether, slice: () => bareSlice(source, bare, many, IN_FLIGHT) },
    { name: NAMES.together, slice: () => ourSlice(source, ledger, many, IN_FLIGHT, () => undefined) },
    { name: NAMES.togetherOffline, slice: () => ourSlice(source, ledger, many, IN_FLIGHT, offlineEvent) },
  ]
  const alone: Contender[] = [
    { name: NAMES.bareAlone, slice: () => bareSlice(source, bare, few, 1) },
    { name: NAMES.alone, slice: () => ourSlice(source, ledger, few, 1, () => undefined) },
  ]
  const many64 = await takeTurns(together, rounds, random)
  const oneByOne = await takeTurns(alone, roundsAlone, random, warmUpsAlone)
  ledger.close()
  bare.close()
  return {
    title: '2  Verify and redeem at the agent, durable (WAL, synchronous=FULL)',
    counts: 'wall time; ratios within each half of the table',
    rows: [...rowsOf(many64, NAMES.bareTogether), ...rowsOf(oneByOne, NAMES.bareAlone)],
    targets: [
      ratesAtLeast(many64, NAMES.together, NAMES.bareTogether, SHARE),
      costsAtMost(oneByOne, NAMES.alone, NAMES.bareAlone, LIMIT),
    ],
    notes: [
      'a claim runs three queries and writes three pages (claim, its index, chained journal row); the bare insert writes one page',
    ],
  }
}

function bareSlice(source: TokenSource, table: BareTable, count: number, group: number): Promise<number> {
  const bytes = source.make(count).map((token) => signedBytes(token, source.keys))
  const exp = source.now + 290
  const nonces = bytes.map(({ signature }) => signature.toString('base64url', 0, 16))
  return wallTime(count, () => {
    for (let from = 0; from < count; from += group) {
      const check = (i: number) => {
        const signed = bytes[from + i]
        if (signed) bareVerify(signed)
      }
      if (group > 1) table.together(nonces.slice(from, from + group), exp, check)
      else {
        check(0)
        table.one(nonces[from] ?? '', exp)
      }
    }
  })
}

function ourSlice(
  source: TokenSource,
  ledger: Ledger,
  count: number,
  inFlight: number,
  event: EventOf,
): Promise<number> {
  const tokens = source.make(count)
  let next = 0
  const work = async () => {
    for (let token = tokens[next++]; token !== undefined; token = tokens[next++])
      await verifyAndClaim(source, ledger, token, event)
  }
  return wallTime(count, async () => {
    await Promise.all(Array.from({ length: inFlight }, work))
  })
}

/** Verifies and claims a token, like edge-agent/decisions. */
async function verifyAndClaim(
  { keys, device, now }: TokenSource,
  ledger: Ledger,
  token: string,
  event: EventOf,
): Promise<void> {
  const opened = openAuthorization(token, { keys, audience: device, now })
  if (!opened.ok) throw new Error(`a valid token was rejected: ${opened.fault}`)
  const { jti, exp, aud } = opened.authorization
  const claimed = await ledger.claim(
    {
      redemptionId: newId('rdm', platform),
      source: 'token',
      nonce: jti,
      rightClass: 'release',
      candidates: [0],
      all: false,
      exp,
      deviceId: aud,
      nowMs: now * 1_000,
    },
    () => event(jti),
  )
  if (!claimed.ok) throw new Error(`a fresh token could not be claimed: ${claimed.reason}`)
}

function offlineEvent(nonce: string): ProtectionEvent {
  return {
    type: 'protection.device.offline',
    eventId: `evt_${nonce}`,
    occurredAt: '2026-11-18T10:26:40.000Z',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    deviceType: 'self_checkout_detacher',
    workflowType: 'self_service',
    protectionAction: 'detach_hard_tag',
    epc: '3034007D00011C400000000B',
    offline: true,
    replayProtectedNonce: nonce,
    authorizationState: 'redeemed',
  }
}
