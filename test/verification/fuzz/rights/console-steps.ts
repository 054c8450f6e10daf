import { ORIGIN } from '../scene/served-cloud.ts'
import { type RightsStep, endRight, isOk, openOnes, wordsFor, someone } from './acts.ts'
import { DOINGS, isAtLeast, mayUseLive, MODES, rightsOf, sees, verdictOf } from './facts.ts'
import { pick, shown, Violation, type World } from './world.ts'

const PAGES = ['', '/agents', '/alarms', '/approvals', '/closings', '/exceptions', '/help', '/operators', '/orders']

const MORE_PAGES = ['/profile', '/refunds', '/stock', '/tags', '/users', '/no-such-page']

const KEYS = {
  p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
}

export const page: RightsStep = async (world, chance) => {
  const session = someone(world, chance)
  const store = pick(chance, world.stores)
  if (!session || !store) return 'no session is open for a page'
  const path = `/console${chance.one([...PAGES, ...MORE_PAGES])}?mode=${chance.one(MODES)}&store=${store.storeId}`
  const request = world.page(session, path)
  const reply = await world.send(request)
  const isSignIn = reply.text.includes('name="password"') && reply.text.includes('name="email"')
  const rights = rightsOf(session)
  if (!rights && !isSignIn) throw new Violation('ended-right', `${path} of ${session.label}: ${shown(reply)}`)
  if (rights && isSignIn) throw new Violation('refused', `${path} of ${session.label} shows the sign-in page`)
  const modes = mayUseLive(session) ? MODES : (['test'] as const)
  world.assertSecrecy(
    reply,
    request,
    modes.flatMap((mode) => wordsFor(rights && { ...rights, mode }, world.stores)),
  )
  return `${session.label} opens ${path.replace(store.storeId, store.label)}: ${reply.status}`
}

/** Sends a form, sometimes so that its right ends on the way. It acts on its store, or on none. */
export const form: RightsStep = async (world, chance, mark) => {
  const session = someone(world, chance)
  const store = pick(chance, world.stores)
  if (!session || !store) return 'no session is open for a form'
  const isInvitation = chance.happens(0.3)
  const address = `${mark}@both.example`
  const fields = isInvitation
    ? { _action: 'invite', email: address, role: 'viewer' }
    : { _action: 'register', name: mark }
  const where = { _mode: store.mode, _store: store.storeId, _key: `${mark}-key-of-the-form` }
  const request = world.form(session, isInvitation ? '/console/users' : '/console/operators', { ...where, ...fields })
  const isLate = session.isOpen && chance.happens(0.4)
  let how = 'nothing ends'
  const meanwhile = async () => void (how = await endRight(world, chance, session))
  const reply = isLate ? await world.sendHeld(request, 'body', meanwhile) : await world.send(request)
  const trace = isInvitation ? (['console_user', 'email'] as const) : (['operator', 'name'] as const)
  const made = await world.countMarks(trace, mark)
  const doing = DOINGS.find(({ operation }) => operation === 'registerOperator')
  const now = rightsOf(session)
  const shownMode = store.mode === 'live' && !mayUseLive(session) ? 'test' : store.mode
  const may = isInvitation
    ? now?.role !== undefined && isAtLeast(now.role, 'manager')
    : doing !== undefined && now !== undefined && verdictOf(doing, { ...now, mode: shownMode }, store) === 'must'
  if (made > 0 && !may)
    throw new Violation(isLate ? 'ended-right' : 'no-right', `the form of ${session.label} for ${store.label} acted`)
  if (made > 0 && !isInvitation && now) {
    const at = world.served.database.reads.selectFrom('operator').select('store_id').where('name', 'like', `%${mark}%`)
    const { store_id } = await at.executeTakeFirstOrThrow()
    if (store_id !== store.storeId) throw new Violation('no-right', `the form for ${store.label} acted on ${store_id}`)
  }
  if (made > 0 && now) world.noteChange(now.account, shownMode, now.stores, store)
  if (made > 0) world.reach('form done')
  if (!isLate && may && !isInvitation && made === 0) throw new Violation('refused', `form ${mark}: ${shown(reply)}`)
  return `${session.label} sends a form for ${store.label}; meanwhile ${how}: ${reply.status}, ${made} made`
}

export const live: RightsStep = async (world, chance, mark) => {
  const session = someone(world, chance)
  if (!session) return 'no session is open for a stream'
  const mode = chance.one(MODES)
  const { path, headers } = world.page(session, `/console/live?mode=${mode}&topics=assistance,stores,protection`)
  const { app } = world.served.cloud
  const response = await world.served.settled(Promise.resolve(app.request(`${ORIGIN}${path}`, { headers })))
  const may = session.isOpen && (mode === 'test' || mayUseLive(session))
  const reader = response.status === 200 ? response.body?.getReader() : undefined
  if (!reader) return `${session.label} listens in ${mode}: ${response.status}`
  const cancel = () => reader.cancel().catch(() => undefined)
  const stream = { label: `stream ${mark}`, session, mode, text: '', isDue: false, cancel }
  world.streams.push(stream)
  if (!may) throw new Violation('stream', `${session.label} may listen in ${mode}`)
  const decoder = new TextDecoder()
  const read = (): void =>
    void reader.read().then(
      ({ done, value }) => {
        if (done) return
        stream.text += decoder.decode(value)
        read()
      },
      () => undefined,
    )
  read()
  return `${session.label} listens in ${mode}`
}

/** A caller with the right changes data that streams report. */
export const change: RightsStep = async (world, chance, mark) => {
  const store = pick(chance, world.stores)
  if (!store) return 'nothing changes'
  const tradingName = `Laden ${store.word} ${mark}`
  await world.root(store.account, store.mode, 'updateStore', { storeId: store.storeId, tradingName })
  world.noteChange(store.account, store.mode, null, store)
  return `${store.label} changes`
}

/** Browsers that subscribe to notices about orders. */
export const subscribe: RightsStep = async (world, chance, mark) => {
  const session = pick(
    chance,
    openOnes(world.sessions).filter((each) => rightsOf(each)?.mode === 'live'),
  )
  const rights = session && rightsOf(session)
  const store = pick(
    chance,
    world.stores.filter((each) => rights && sees(rights, each)),
  )
  if (!session || !store) return 'no session is open for notices'
  const body = { kind: 'web', endpoint: `https://push.sim/${mark}`, keys: KEYS, storeId: store.storeId }
  const reply = await world.send(world.request('registerPushSubscription', body, session.token))
  if (isOk(reply)) world.browsers.push({ label: mark, session, heardAfterEnd: false })
  if (isOk(reply)) world.reach('subscription')
  return `${session.label} subscribes to orders of ${store.label}: ${reply.status}`
}

export const order: RightsStep = async (world, chance) => {
  const store = pick(
    chance,
    world.stores.filter(({ mode, package: have }) => mode === 'live' && have !== 'DISCOVER'),
  )
  if (!store) return 'no live store takes orders'
  const { storeId, productId, account, mode } = store
  const body = { storeId, userId: 'shopper', items: [{ productId, quantity: 1 }] }
  await world.send(world.request('submitClickCollectOrder', body, account.rootKeys[mode]))
  await world.served.pass(2_000)
  await noticesSent(world)
  const browser = world.browsers.find(({ heardAfterEnd }) => heardAfterEnd)
  if (browser) throw new Violation('push', `${browser.session.label} has ended, and its browser got a notice`)
  return `a shopper orders at ${store.label}`
}

/** Turns of the event loop within which every notice is sent. */
const NOTICE_TURNS = 20_000

/**
 * Waits until no notice is on its way. A thread encrypts notices, so a notice could otherwise arrive in a later step,
 * when a session has ended.
 */
async function noticesSent({ served }: World): Promise<void> {
  for (let turn = 0; turn < NOTICE_TURNS; turn++) {
    const { reads } = served.database
    const unsent = await reads.selectFrom('push_delivery').select('tenant').executeTakeFirst()
    const waiting = unsent ?? (await reads.selectFrom('staff_notice').select('tenant').executeTakeFirst())
    if (!waiting) return
    await new Promise((resolve) => setImmediate(resolve))
  }
}
