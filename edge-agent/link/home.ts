import { HOME_MESSAGE_LIFE, HomeAnswer, HomeQuestion } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyId, keyRing, type KeyRing, type Signer } from '../../policy/documents/keys.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import type { DenyReason, Outcome, RightClass } from '../../policy/vocabulary.ts'
import type { GrantAnswer } from '../ledger/home-grants.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { ledgerDoubt } from '../trust/ledger-doubt.ts'
import type { Trust } from '../trust/trust.ts'
import { askingLimit } from './asking-limit.ts'
import { httpClient, type Fetch } from './http-client.ts'

/**
 *   asker: commit redemption id ─ sign ──▶ home: same id? same answer : take the rights ─ sign ──▶ asker: claim ─ actuate ─ outcome
 *
 * Between the agents of a store. Both know each other's keys, and where the home is, from the signed policy.
 */
export interface Home {
  /** Whether receipts are redeemed at another agent whose address is known. */
  readonly isElsewhere: boolean
  /** When the home last answered, trusted ms; 0: never. */
  readonly lastAnswerMs: number
  /** Asks the home for rights of a receipt; `unreachable` when it does not answer as it should. */
  ask(wish: HomeWish): Promise<({ redemptionId: string } & GrantAnswer) | 'unreachable'>
  /** Gives back what a failed actuator has not used. Never throws; what is not heard stays used. */
  giveBack(wish: HomeWish, redemptionId: string, outcome: Outcome): Promise<void>
  /** As the home: the signed answer to a question of another agent. */
  answer(question: string): Promise<HomeReply>
}

export type HomeReply =
  | { kind: 'answer'; answer: string }
  /** The question is not one for this agent, or not genuine. */
  | { kind: 'not_home' }
  /** This agent asks too often: nothing was looked at. */
  | { kind: 'too_many_questions'; retryAfterSeconds: number }

export interface HomeWish {
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  exp: number
  deviceId: string
}

export interface HomeParts {
  platform: Platform
  agentId: string
  ledger: Ledger
  trust: Trust
  signer(): Signer
  fetch: Fetch
  nowMs(): number
}

const NOT_HOME: HomeReply = { kind: 'not_home' }
/** A person stands at the gate: who does not answer within this is out of reach, ms. */
const ANSWER_WITHIN_MS = 1_000
/** What one agent may ask: far more than people pass at its gates, and too little to hold up the lanes of the home. */
const ASKING = { perSecond: 20, burst: 60 }
/** A home that was asked too often did answer: nobody claims in its place. */
const TOO_MANY = 'too many'

/** The way to the home, and this agent's part when it is the home itself. */
export function openHome({ platform, agentId, ledger, trust, signer, fetch, nowMs }: HomeParts): Home {
  const { commits, homeGrants } = ledger
  const asking = askingLimit(platform.clock, ASKING)
  let lastAnswerMs = 0

  const agentOf = (id: string) => trust.policy?.agents?.find((agent) => agent.agentId === id)
  const ringOf = (id: string): KeyRing => keyRing((agentOf(id)?.keys ?? []).map((x) => ({ kid: keyId(x), alg: 'EdDSA', x, use: 'agent', iss: id, state: 'active' })))
  const times = () => {
    const iat = Math.max(0, Math.floor(nowMs() / 1_000))
    return { iat, exp: iat + HOME_MESSAGE_LIFE }
  }

  function home(): { agentId: string; url: string; epoch: number } | undefined {
    const policy = trust.policy?.policy
    if (!policy || policy.home === 'cloud' || policy.home === agentId) return undefined
    const url = agentOf(policy.home)?.url
    return url ? { agentId: policy.home, url, epoch: policy.homeEpoch } : undefined
  }

  async function send(wish: HomeWish, redemptionId: string, outcome?: Outcome): Promise<HomeAnswer | typeof TOO_MANY | undefined> {
    const at = home()
    if (!at) return undefined
    const { deviceId: _, exp: receiptExp, ...asked } = wish
    const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const claims: HomeQuestion = { aud: at.agentId, ...times(), iss: agentId, jti, homeEpoch: at.epoch, redemptionId, ...asked, candidates: [...asked.candidates], receiptExp, ...(outcome && { outcome }) }
    const question = signDocument(DOCUMENT_KINDS.homeQuestion, claims, signer())
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post('redeem', { question }, { timeoutMs: ANSWER_WITHIN_MS })
    if (answer.kind === 'refused' && answer.status === 429) return TOO_MANY
    const text = answer.kind === 'answered' ? answer.body['answer'] : undefined
    if (typeof text !== 'string') return undefined
    const opened = openDocument<HomeAnswer>(text, DOCUMENT_KINDS.homeAnswer, { keys: ringOf(at.agentId), audience: agentId })
    const checked = opened.ok ? HomeAnswer.safeParse(opened.claims) : undefined
    // Only the answer to the question that is outstanding counts: an old one may say what is no longer so.
    if (!checked?.success || checked.data.jti !== jti || checked.data.redemptionId !== redemptionId || checked.data.iss !== at.agentId) return undefined
    lastAnswerMs = nowMs()
    return checked.data
  }

  return {
    get isElsewhere() {
      return home() !== undefined
    },
    get lastAnswerMs() {
      return lastAnswerMs
    },
    async ask(wish) {
      const subject = [wish.cti, wish.rightClass, wish.deviceId, wish.all, wish.candidates.join(',')].join('|')
      const redemptionId = await commits.durably(() => homeGrants.ask(subject, newId('rdm', platform), wish.exp))
      const answer = await send(wish, redemptionId)
      if (!answer) return 'unreachable'
      // Nothing was decided: the same question may be asked again.
      if (answer === TOO_MANY) return { redemptionId, ordinals: [], remaining: 0, reason: 'limit_exceeded' }
      const asked = new Set(wish.candidates)
      if (answer.reason || answer.ordinals.length === 0 || answer.ordinals.some((n) => !asked.has(n))) {
        await commits.durably(() => homeGrants.asked(redemptionId))
        return { redemptionId, ordinals: [], remaining: 0, reason: (answer.reason ?? 'token_invalid') as DenyReason }
      }
      return { redemptionId, ordinals: answer.ordinals, remaining: answer.remaining }
    },
    async giveBack(wish, redemptionId, outcome) {
      if (outcome === 'failed') await send(wish, redemptionId, outcome).catch(() => undefined)
    },
    async answer(text) {
      const asker = issuerOf(text)
      const policy = trust.policy?.policy
      if (policy?.home !== agentId || asker === undefined || asker === agentId) return NOT_HOME
      const opened = openDocument<HomeQuestion>(text, DOCUMENT_KINDS.homeQuestion, { keys: ringOf(asker), audience: agentId })
      const checked = opened.ok ? HomeQuestion.safeParse(opened.claims) : undefined
      if (!checked?.success || checked.data.iss !== asker || checked.data.homeEpoch !== policy.homeEpoch) return NOT_HOME
      // Counted once it is known who asks: nobody uses up what another may ask.
      const retryAfterSeconds = asking.take(asker)
      if (retryAfterSeconds > 0) return { kind: 'too_many_questions', retryAfterSeconds }
      const { jti, redemptionId, cti, rightClass, candidates, all, receiptExp: exp, outcome } = checked.data
      const given = await commits.durably((): GrantAnswer | undefined => {
        // A ledger that was put back has forgotten what it gave; of one that exists twice the other copy gives too.
        const isUnsure = trust.isImporting(exp) || ledgerDoubt(ledger, nowMs()) !== undefined
        if (outcome === undefined && isUnsure) return { ordinals: [], remaining: 0, reason: 'manual_assistance_required' }
        if (outcome === undefined) return homeGrants.grant({ agentId: asker, redemptionId, cti, rightClass, candidates, all, exp, nowMs: nowMs() })
        if (outcome === 'failed') homeGrants.giveBack(asker, redemptionId)
        return { ordinals: [], remaining: 0 }
      })
      if (!given) return NOT_HOME
      const claims: HomeAnswer = { aud: asker, ...times(), iss: agentId, jti, redemptionId, ...given }
      return { kind: 'answer', answer: signDocument(DOCUMENT_KINDS.homeAnswer, claims, signer()) }
    },
  }
}

/** Who says that it asks; nothing is believed by it but whose keys to check with. */
function issuerOf(text: string): string | undefined {
  try {
    const { iss } = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()) as { iss?: unknown }
    return typeof iss === 'string' ? iss : undefined
  } catch {
    return undefined
  }
}
