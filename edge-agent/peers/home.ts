import { decodeClaims } from '../../policy/documents/decode-claims.ts'
import { HOME_MESSAGE_LIFE, HomeAnswer, HomeQuestion } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { newId } from '../../policy/ids.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { DenyReason, RightClass } from '../../policy/vocabulary.ts'
import type { HomeWord } from '../ledger/home/home-asks.ts'
import type { GrantAnswer } from '../ledger/home/home-grants.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import { ledgerDoubt } from '../trust/revocation/ledger-doubt.ts'
import type { Trust } from '../trust/trust.ts'
import { askingLimit } from './asking-limit.ts'
import { openHomeTimes } from './home-time.ts'
import { openHomeWords, type Told } from './home-words.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'
import { agentKeys, storeAgent } from './store-agents.ts'

/**
 *   asker: commit redemption id ─ sign ──▶ home: same id? same answer : take the rights ─ sign ──▶ asker: claim ─ actuate ─ outcome
 *          not used, or nobody knows ─ sign ──▶ home: free again, or for staff                        (told until the home has heard)
 *
 * Between the agents of a store. Both know each other's keys, and where the home is, from the signed policy.
 */
export interface Home {
  /** Whether receipts are redeemed at another agent whose address is known. */
  readonly isElsewhere: boolean
  /** When the home last answered, trusted ms; 0: never. */
  readonly lastAnswerMs: number
  /** Asks the home for rights of a receipt. */
  ask(wish: HomeWish): Promise<HomeSaid>
  /** What became of a right that was asked for is written down: tells the home once what it must hear, and goes on until it has heard. Never throws. */
  settled(): Promise<void>
  /** As the home: the signed answer to a question of another agent. */
  answer(question: string): Promise<HomeReply>
  /** As the home: the signed time for another agent, which knows none. */
  answerTime(question: string): HomeReply
  /** Begins to tell what was left from before, and to ask for the time where nobody else tells it. */
  start(): void
  stop(): Promise<void>
}

/** `unreachable`: it did not answer as it should; the question may have arrived, under the id that it was asked by. */
export type HomeSaid =
  | ({ redemptionId: string } & GrantAnswer)
  | { refused: DenyReason }
  | { unreachable: true; redemptionId?: string }

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
  clock: AgentClock
  /** The cloud is in reach, and doubts nothing of this ledger. */
  isLedgerSure(): boolean
}

const NOT_HOME: HomeReply = { kind: 'not_home' }
/** A person stands at the gate: who does not answer within this is out of reach, ms. */
const ANSWER_WITHIN_MS = 1_000
/** What one agent may ask: far more than people pass at its gates, and too little to hold up the lanes of the home. */
const ASKING = { perSecond: 20, burst: 60 }
/**
 * The same for questions that are not of now. They may be played back by somebody who has listened, and must not use up what the agent may
 * ask; or its clock is wrong and so is each question's time, for which nobody is sent away: enough for people all the same.
 */
const ASKING_LATE = { perSecond: 5, burst: 20 }
/** Clocks in a store may differ by so much, s (contracts §4). */
const CLOCKS_DIFFER_S = 60
/** Questions whose answers are kept. */
const KEPT_ANSWERS = 500
/** What was asked is used within a moment, or not at all, ms. */
const USED_WITHIN_MS = 5_000
/** Timers at once; what is beyond them is looked at with what is told. */
const WATCHED = 1_000
/** A home that was asked too often did answer: nobody claims in its place. */
const TOO_MANY = 'too many'
/** So did one that says that it is none, or does not know who asks: one of the two has not heard the newest, and staff stand in for it. */
const IS_NONE = 'no home'

/** The way to the home, and this agent's part when it is the home itself. */
export function openHome({
  platform,
  agentId,
  ledger,
  trust,
  signer,
  fetch,
  nowMs,
  clock,
  isLedgerSure,
}: HomeParts): Home {
  const { commits, homeGrants, homeAsks } = ledger
  const asking = askingLimit(platform.clock, ASKING)
  const askingLate = askingLimit(platform.clock, ASKING_LATE)
  /** Answers by the very text of the question. */
  const answers = new Map<string, Promise<HomeReply>>()
  /** Questions that are being looked at; what is not genuine is so for a moment. */
  const underWay = new Map<string, Promise<HomeReply>>()
  /** Asked, and nobody has gone on with it yet. */
  const watched = new Map<string, Cancel>()
  let lastAnswerMs = 0
  const words = openHomeWords({
    platform,
    ledger,
    tell,
    isLedgerSure,
    isWatched: (redemptionId) => watched.has(redemptionId),
  })

  const agentOf = (id: string) => storeAgent(trust, id)
  const ringOf = (id: string) => agentKeys(trust, id)
  const times = () => {
    const iat = Math.max(0, Math.floor(nowMs() / 1_000))
    return { iat, exp: iat + HOME_MESSAGE_LIFE }
  }

  interface At {
    agentId: string
    url: string
    epoch: number
  }

  function home(): At | undefined {
    const policy = trust.policy?.policy
    if (!policy || policy.home === 'cloud' || policy.home === agentId) return undefined
    const url = agentOf(policy.home)?.url
    return url ? { agentId: policy.home, url, epoch: policy.homeEpoch } : undefined
  }

  const time = openHomeTimes({ platform, agentId, clock, signer, fetch, home, ringOf })

  type Asked = Pick<
    HomeQuestion,
    'redemptionId' | 'cti' | 'rightClass' | 'candidates' | 'all' | 'receiptExp' | 'outcome'
  >

  async function send(at: At, asked: Asked): Promise<HomeAnswer | typeof TOO_MANY | typeof IS_NONE | undefined> {
    const { redemptionId } = asked
    const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const claims: HomeQuestion = { aud: at.agentId, ...times(), iss: agentId, jti, homeEpoch: at.epoch, ...asked }
    const question = signDocument(DOCUMENT_KINDS.homeQuestion, claims, signer())
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post(
      'redeem',
      { question },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    if (answer.kind === 'refused' && answer.status === 429) return TOO_MANY
    if (answer.kind === 'refused' && answer.code === 'not_home') return IS_NONE
    const text = answer.kind === 'answered' ? answer.body['answer'] : undefined
    if (typeof text !== 'string') return undefined
    const opened = openDocument<HomeAnswer>(text, DOCUMENT_KINDS.homeAnswer, {
      keys: ringOf(at.agentId),
      audience: agentId,
    })
    const checked = opened.ok ? HomeAnswer.safeParse(opened.claims) : undefined
    // Only the answer to the question that is outstanding counts: an old one may say what is no longer so.
    if (
      !checked?.success ||
      checked.data.jti !== jti ||
      checked.data.redemptionId !== redemptionId ||
      checked.data.iss !== at.agentId
    )
      return undefined
    if (home()?.agentId === at.agentId) lastAnswerMs = nowMs()
    return checked.data
  }

  /** Tells whoever gave a right what became of it, also when receipts have another home by now. One that is no more may have been enrolled anew, as the home. */
  async function tell(word: HomeWord): Promise<Told> {
    const { redemptionId, home: to, homeEpoch, cti, rightClass, candidates, exp: receiptExp, outcome } = word
    const { agents, policy } = trust.policy ?? {}
    if (!agents || !policy) return 'not heard'
    const { agentId: of, url } = agentOf(to) ?? agentOf(policy.home) ?? { agentId, url: null }
    if (of === agentId) return 'gone'
    if (!url) return 'not heard'
    // The home forwards this report, and the cloud verifies it against what was given: the same epoch and units.
    const answer = await send(
      { agentId: of, url, epoch: homeEpoch ?? policy.homeEpoch },
      { redemptionId, cti, rightClass, candidates, all: false, receiptExp, outcome },
    )
    return typeof answer === 'object' ? 'heard' : (answer ?? 'not heard')
  }

  /** Whoever asked goes on with the answer at once, or not at all: then the home must not hold the right for used. */
  function watch(redemptionId: string): void {
    watched.get(redemptionId)?.()
    watched.delete(redemptionId)
    if (watched.size >= WATCHED) return
    const cancel = platform.timers.after(USED_WITHIN_MS, () => {
      watched.delete(redemptionId)
      words.abandon(redemptionId)
    })
    watched.set(redemptionId, cancel)
  }

  function unwatch(redemptionId: string): void {
    watched.get(redemptionId)?.()
    watched.delete(redemptionId)
  }

  /** Whether a question was asked just now, as far as can be known here. */
  function isOfNow({ iat, exp }: HomeQuestion): boolean {
    const nowS = nowMs() / 1_000
    return clock.now().trust === 'none' || (iat - CLOCKS_DIFFER_S <= nowS && nowS <= exp + CLOCKS_DIFFER_S)
  }

  async function answerTo(text: string): Promise<HomeReply> {
    const asker = issuerOf(text)
    const policy = trust.policy?.policy
    if (!policy || asker === undefined || asker === agentId) return NOT_HOME
    const opened = openDocument<HomeQuestion>(text, DOCUMENT_KINDS.homeQuestion, {
      keys: ringOf(asker),
      audience: agentId,
    })
    const checked = opened.ok ? HomeQuestion.safeParse(opened.claims) : undefined
    if (!checked?.success || checked.data.iss !== asker) return NOT_HOME
    const { jti, redemptionId, cti, rightClass, candidates, all, receiptExp: exp, outcome, homeEpoch } = checked.data
    // What became of a right concerns whoever gave it, whether it is the home still or not.
    if (outcome === undefined && (policy.home !== agentId || homeEpoch !== policy.homeEpoch)) return NOT_HOME
    // Counted once it is known who asks: nobody uses up what another may ask.
    const retryAfterSeconds = (isOfNow(checked.data) ? asking : askingLate).take(asker)
    if (retryAfterSeconds > 0) return { kind: 'too_many_questions', retryAfterSeconds }
    const given = await commits.durably((): GrantAnswer | undefined => {
      if (outcome === 'failed' || outcome === 'unknown')
        homeGrants.hear({
          agentId: asker,
          redemptionId,
          outcome,
          candidates,
          exp,
          nowMs: nowMs(),
          report: text,
          isOwnEpoch: policy.home === agentId && homeEpoch === policy.homeEpoch,
        })
      if (outcome !== undefined) return { ordinals: [], remaining: 0 }
      // A ledger that was put back has forgotten what it gave; of one that exists twice the other copy gives too.
      const isUnsure = trust.isImporting(exp) || ledgerDoubt(ledger, nowMs()) !== undefined
      return homeGrants.grant(
        { agentId: asker, redemptionId, cti, rightClass, candidates, all, exp, nowMs: nowMs(), homeEpoch },
        isUnsure ? 'manual_assistance_required' : undefined,
      )
    })
    if (!given) return NOT_HOME
    const claims: HomeAnswer = { aud: asker, ...times(), iss: agentId, jti, redemptionId, ...given }
    return { kind: 'answer', answer: signDocument(DOCUMENT_KINDS.homeAnswer, claims, signer()) }
  }

  function keep(text: string, reply: Promise<HomeReply>): void {
    const [oldest] = answers.keys()
    if (answers.size >= KEPT_ANSWERS && oldest !== undefined) answers.delete(oldest)
    answers.set(text, reply)
  }

  return {
    get isElsewhere() {
      return home() !== undefined
    },
    get lastAnswerMs() {
      return lastAnswerMs
    },
    async ask(wish) {
      const at = home()
      // What it still has to hear may be about what it is asked for.
      const told = at && (await words.tellFirst(at.agentId, wish.cti))
      if (!at || told === 'not heard') return { unreachable: true }
      if (told === TOO_MANY || told === IS_NONE) return notNow(told)
      const { deviceId, cti, rightClass, all, candidates, exp } = wish
      const subject = [at.agentId, at.epoch, cti, rightClass, deviceId, all, candidates.join(',')].join('|')
      const redemptionId = await commits.durably(() => {
        const id = homeAsks.ask(subject, newId('rdm', platform), {
          home: at.agentId,
          homeEpoch: at.epoch,
          cti,
          rightClass,
          candidates,
          exp,
        })
        watch(id)
        return id
      })
      const answer = await send(at, {
        redemptionId,
        cti,
        rightClass,
        candidates: [...candidates],
        all,
        receiptExp: exp,
      })
      if (!answer) return { unreachable: true, redemptionId }
      // Nothing was decided: the same question may be asked again.
      if (answer === TOO_MANY || answer === IS_NONE) return notNow(answer)
      const asked = new Set(candidates)
      if (answer.reason || answer.ordinals.length === 0 || answer.ordinals.some((n) => !asked.has(n))) {
        await commits.durably(() => homeAsks.refused(redemptionId))
        unwatch(redemptionId)
        return { redemptionId, ordinals: [], remaining: 0, reason: (answer.reason ?? 'token_invalid') as DenyReason }
      }
      return { redemptionId, ordinals: answer.ordinals, remaining: answer.remaining }
    },
    settled: () => words.kick(),
    answer(text) {
      // Who plays a question back gets what was answered then: nothing is looked at, and nothing of the asker's used up.
      const known = answers.get(text) ?? underWay.get(text)
      if (known) return known
      if (underWay.size >= KEPT_ANSWERS) return Promise.resolve({ kind: 'too_many_questions', retryAfterSeconds: 1 })
      const reply = answerTo(text)
      underWay.set(text, reply)
      reply
        // Once it was found genuine: whoever sends rubbish drives none of them out.
        .then(({ kind }) => kind === 'answer' && keep(text, reply))
        .catch(() => undefined)
        .finally(() => underWay.delete(text))
      return reply
    },
    answerTime(text) {
      const asker = issuerOf(text)
      if (asker === undefined || asker === agentId || trust.policy?.policy.home !== agentId) return NOT_HOME
      const answer = time.answer(text, asker)
      if (answer === undefined) return NOT_HOME
      const retryAfterSeconds = askingLate.take(asker)
      return retryAfterSeconds > 0 ? { kind: 'too_many_questions', retryAfterSeconds } : { kind: 'answer', answer }
    },
    start() {
      words.start()
      time.start()
    },
    stop() {
      time.stop()
      for (const cancel of watched.values()) cancel()
      watched.clear()
      return words.stop()
    },
  }
}

/** What a home that answers, and decides nothing, is taken for: it is not out of reach. */
function notNow(answer: typeof TOO_MANY | typeof IS_NONE): HomeSaid {
  return { refused: answer === TOO_MANY ? 'limit_exceeded' : 'manual_assistance_required' }
}

/** Who says that it asks; nothing is believed by it but whose keys to check with. */
function issuerOf(text: string): string | undefined {
  const { iss } = decodeClaims(text)
  return typeof iss === 'string' ? iss : undefined
}
