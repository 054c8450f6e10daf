import { type RightsStep, call, end, isOk, late, manage, openOnes, someone } from './acts.ts'
import { page, form, live, change, subscribe, order } from './console-steps.ts'
import { arrive, signIn, factor, makeLink, useLink, provider } from './sign-in-steps.ts'
import { DOINGS, mayUseLive, MODES } from './facts.ts'
import { platform } from './platform-steps.ts'
import { pick, shown, Violation } from './world.ts'

/** A line end, C1, a bidi mark, a zero-width space, a line separator, and NUL. */
const UNPRINTABLE = ['\n', '\u009b', '\u202e', '\u200b', '\u2028', '\u0000']

/** The local API of an agent: pairings begin and end, also while requests are on their way. */
const local: RightsStep = async ({ shop }, chance) => {
  if (openOnes(shop.pairings).length < 3) {
    const isLink = chance.happens(0.5)
    if (!isLink) return `pairs ${shop.pairProgram().label}`
    const paired = await shop.openLink()
    if (paired !== 1) throw new Violation('no-right', `one link paired ${paired} browsers`)
    return 'a link pairs one browser'
  }
  const pairing = pick(chance, shop.pairings)
  const operation = chance.one(shop.operations)
  if (!pairing) return 'no program is paired'
  const isLate = pairing.isOpen && operation.method === 'POST' && chance.happens(0.5)
  const { status, headers } = await shop.call(
    operation,
    pairing.header,
    isLate ? () => shop.revoke(pairing) : undefined,
  )
  // Wrong badges and PINs get 401, too.
  const isUnpaired = status === 401 && headers.has('www-authenticate')
  const what = `${pairing.label} calls ${operation.path}${isLate ? ', and ends meanwhile' : ''}: ${status}`
  if (status === 500) throw new Violation('server-error', what)
  if (!pairing.isOpen && !isUnpaired) throw new Violation(isLate ? 'ended-right' : 'no-right', what)
  if (pairing.isOpen && isUnpaired) throw new Violation('refused', what)
  return what
}

/** Many requests for accounts of one network refuse those of no other one. */
const register: RightsStep = async (world, chance, mark) => {
  const network = chance.between(1, 3)
  const address = `10.9.${network}.1`
  const times = chance.one([1, 1, 8, 15])
  let accepted = 0
  for (let i = 0; i < times; i++) {
    const sent = (world.registrations.get(address) ?? []).filter((atMs) => atMs > world.nowMs - 86_400_000)
    const body = {
      companyName: `Firma ${mark} ${i}`,
      address: { street: 'Kai 2', city: 'Kiel', zip: '24103', country: 'DE' },
    }
    const reply = await world.send(world.request('submitStoreRegistrationRequest', body, undefined, address))
    if (isOk(reply)) accepted++
    if (isOk(reply) && sent.length >= 20)
      throw new Violation('share', `${address} sent ${sent.length + 1} requests in a day`)
    if (!isOk(reply) && sent.length < 20)
      throw new Violation('share', `${address} sent ${sent.length}: ${shown(reply)}`)
    world.registrations.set(address, isOk(reply) ? [...sent, world.nowMs] : sent)
  }
  return `${times} requests for accounts from ${address}, ${accepted} accepted`
}

/** A name with a character that changes how lines are shown. */
const text: RightsStep = async (world, chance, mark) => {
  const account = chance.one(world.accounts)
  const store = pick(chance, account.stores)
  const doing = chance.one(DOINGS.filter(({ trace }) => trace))
  if (!store) return 'no store is left'
  const bad = `${mark}${chance.one(UNPRINTABLE)}x`
  const session = await world.rootSession(account)
  const token = doing.kinds.length > 0 ? account.rootKeys[store.mode] : session.token
  const reply = await world.send(world.request(doing.operation, doing.body(bad, store, world.newEan()), token))
  if (isOk(reply) || (doing.trace && (await world.countMarks(doing.trace, mark)) > 0))
    throw new Violation('text', `${doing.operation} accepted ${JSON.stringify(bad)}`)
  return `${doing.operation} with ${JSON.stringify(bad)}: ${reply.status}`
}

const packages: RightsStep = async (world, chance) => {
  const store = pick(
    chance,
    world.stores.filter(({ mode }) => mode === 'live'),
  )
  if (!store) return 'no package changes'
  const wanted = chance.one(['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME', 'PRIME'] as const)
  await world.setPackage(store, wanted)
  return `${store.label} gets ${wanted}`
}

const switchMode: RightsStep = async (world, chance) => {
  const session = someone(world, chance)
  if (!session) return 'no session is open for a switch'
  const mode = chance.one(MODES)
  const reply = await world.send(world.request('switchMode', { mode }, session.token))
  const may = session.isOpen && (mode === 'test' || mayUseLive(session))
  if (isOk(reply) && !may) throw new Violation('no-right', `${session.label} switched to ${mode}: ${shown(reply)}`)
  if (!isOk(reply) && may) throw new Violation('refused', `${session.label} to ${mode}: ${shown(reply)}`)
  if (isOk(reply)) session.mode = mode
  return `${session.label} switches to ${mode}: ${reply.status}`
}

const pass: RightsStep = async (world, chance) => {
  const minutes = chance.one([0.02, 0.02, 0.02, 1, 1, 1, 11, 16, 780])
  await world.served.pass(minutes * 60_000)
  // Sessions end after 12 hours without use.
  if (minutes === 780) for (const session of [...world.sessions, ...world.platformSessions]) session.isOpen = false
  await world.checkStreams()
  for (const stream of world.streams) stream.isDue = false
  return `${minutes} minutes pass`
}

/** All steps with their weights. */
export const RIGHTS_STEPS: Readonly<Record<string, readonly [weight: number, step: RightsStep]>> = {
  call: [20, call],
  late: [12, late],
  end: [3, end],
  manage: [4, manage],
  arrive: [18, arrive],
  page: [6, page],
  form: [8, form],
  live: [4, live],
  change: [4, change],
  signIn: [5, signIn],
  factor: [14, factor],
  makeLink: [4, makeLink],
  useLink: [4, useLink],
  provider: [2, provider],
  subscribe: [3, subscribe],
  order: [3, order],
  local: [6, local],
  register: [2, register],
  text: [2, text],
  packages: [1, packages],
  switchMode: [2, switchMode],
  platform: [12, platform],
  pass: [4, pass],
}
