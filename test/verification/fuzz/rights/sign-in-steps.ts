import { TOTP } from 'otpauth'
import { invite } from '../../../../cloud/platform/users/invitations.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import { type HttpReply, type Json } from '../scene/served-cloud.ts'
import { type RightsStep, isAtLeastOf, isOk, openOnes, sideBySide, someone } from './acts.ts'
import { covers, isAtLeast, MODES, rightsOf, ROLES, type Link, type Session, type User } from './facts.ts'
import { PASSWORDS, pick, shown, Violation, type World } from './world.ts'

const WRONG = 'six words that are surely wrong'

/** Wrong guesses of one network in 15 minutes. */
const NETWORK_GUESSES = 100
const ADDRESSES = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5']

const codeOf = (secret: string, nowMs: number) => new TOTP({ secret }).generate({ timestamp: nowMs })

/** A session begins; or an account gets a user or a key. */
export const arrive: RightsStep = async (world, chance, mark) => {
  if (chance.happens(0.25)) {
    const [account, mode] = [chance.one(world.accounts), chance.one(MODES)]
    const kind = chance.one(['secret', 'secret', 'publishable'] as const)
    const stores = chance.happens(0.5) ? account.stores.filter((store) => store.mode === mode).slice(0, 1) : null
    const bound = stores && { storeIds: stores.map(({ storeId }) => storeId) }
    const made = await world.root(account, mode, 'createApiKey', { kind, name: `Kasse ${mark}`, ...bound })
    const own = { token: String(made['key']), keyId: String(made['keyId']) }
    world.keys.push({ label: `key ${mark}`, kind, account, mode, stores, ...own, isOpen: true })
    return `${account.label} gets a ${kind} key for ${stores ? 'one store' : 'all stores'} in ${mode}`
  }
  const user = pick(
    chance,
    world.users.filter((each) => !each.isGone && each.hasAccepted),
  )
  if (!user || chance.happens(0.25)) {
    const account = chance.one(world.accounts)
    const role = chance.one(ROLES)
    const stores = role === 'owner' || chance.happens(0.5) ? null : sideBySide(account.stores)
    const email = `new${world.users.length}@${account.word.toLowerCase()}.example`
    await world.addUser(account, { email, role, stores, isSandboxOnly: chance.happens(0.2) })
    return `${email} becomes a ${role} of ${account.label}`
  }
  const hasFactor = user.totp !== undefined || user.email.startsWith('root@')
  return `begins ${(await world.startSession(user, chance.one(MODES), hasFactor)).label}`
}

/** Signs in with right and wrong passwords, alone and at once, then with a code. */
export const signIn: RightsStep = async (world, chance) => {
  const withApp = world.users.filter(({ totp, isGone }) => totp !== undefined && !isGone)
  const among = [world.users.filter(({ email }) => email.includes('@both')), withApp, world.users]
  const user = pick(chance, chance.one(among.filter((users) => users.length > 0)))
  if (!user) return 'no user is left'
  const { email } = user
  const account = chance.happens(0.4) ? chance.one(world.accounts).name : undefined
  const password = chance.happens(0.4) ? WRONG : chance.one(PASSWORDS)
  const times = chance.happens(0.3) ? chance.one([3, 12, 14]) : 1
  // Threads compare passwords, so the answers to a burst come in any order. Wrong guesses from one address make that order irrelevant.
  const isTogether = password === WRONG && chance.happens(0.5)
  const addressOfAll = chance.one(ADDRESSES)
  const body = { email, password, ...(account !== undefined && { account }) }
  const compared = world.users.filter(
    (each) =>
      each.email === email &&
      !each.isGone &&
      each.password !== undefined &&
      (account ?? each.account.name) === each.account.name,
  )
  const fits = compared.filter((each) => each.password === password)
  const [only] = fits
  const one = async () => {
    const address = isTogether ? addressOfAll : chance.one(ADDRESSES)
    const mayTry = world.guessesOf(email) < 10 && world.guessesOf(address) < NETWORK_GUESSES
    const reply = await world.send(world.request('signIn', body, undefined, address))
    return { reply, mayTry, address }
  }
  const answers: Awaited<ReturnType<typeof one>>[] = []
  const judgeOne = ({ reply, mayTry, address }: Awaited<ReturnType<typeof one>>) => {
    const isGuess = reply.status === 401 || (reply.status !== 429 && fits.length < compared.length)
    if (isGuess) world.countGuess(email)
    if (reply.status === 401) world.countGuess(address, NETWORK_GUESSES)
    const expected = fits.length === 0 ? 401 : fits.length === 1 ? 200 : 409
    if (reply.status !== expected && reply.status !== 429)
      throw new Violation('wrong-account', `${email} with ${fits.length} fitting users: ${shown(reply)}`)
    if (reply.status === 429 && mayTry && !isTogether)
      throw new Violation('refused', `signIn of ${email}: ${shown(reply)}`)
    if (reply.status !== 200 || !only) return
    if (reply.json?.['userId'] !== only.userId)
      throw new Violation('wrong-account', `${email} got the session of ${String(reply.json?.['userId'])}`)
    world.reach('sign-in')
    if (reply.json?.['state'] === 'active')
      world.addSession(only, {
        token: String(reply.json['sessionToken']),
        mode: reply.json['mode'] as Session['mode'],
        hasFactor: false,
      })
  }
  for (let i = 0; i < (isTogether ? 1 : times); i++) {
    const next = await Promise.all(Array.from({ length: isTogether ? times : 1 }, one))
    for (const answer of next) judgeOne(answer)
    answers.push(...next)
  }
  const pending = answers.find(({ reply }) => reply.json?.['state'] === 'pending')
  const codes = pending && only ? await tryCodes(world, chance, only, pending.reply) : ''
  return `signs in ${times} times as ${email} of ${account ?? 'any account'}: ${answers
    .map(({ reply }) => reply.status)
    .toSorted()
    .join()}${codes}`
}

/** The second step of a sign-in, perhaps after wrong codes. */
async function tryCodes(world: World, chance: Chance, user: User, { json }: HttpReply): Promise<string> {
  const sessionToken = String(json?.['sessionToken'])
  const subject = `codes of ${user.userId}`
  const wrong = chance.happens(0.5) ? chance.between(1, 12) : 0
  const address = chance.one(ADDRESSES)
  for (let i = 0; i < wrong; i++) {
    const reply = await world.send(
      world.request('confirmSignIn', { sessionToken, code: '00000000' }, undefined, address),
    )
    if (reply.status !== 401) continue
    world.countGuess(subject)
    world.countGuess(address, NETWORK_GUESSES)
  }
  const code = codeOf(user.totp ?? '', world.nowMs)
  const reply = await world.send(world.request('confirmSignIn', { sessionToken, code }, undefined, address))
  if (!isOk(reply)) return `, then ${wrong} wrong codes`
  world.guesses.delete(subject)
  const mode = reply.json?.['mode'] as Session['mode']
  world.addSession(user, { token: String(reply.json?.['sessionToken']), mode, hasFactor: true })
  world.reach('sign-in with a code')
  return `, then ${wrong} wrong codes and the right one`
}

/** Begins, confirms and removes a second factor, and changes the password: also of other sessions, and too late. */
export const factor: RightsStep = async (world, chance) => {
  const able = world.sessions.filter(({ user }) => !user.isGone && !user.email.startsWith('root@'))
  const begun = able.filter((each) => each.begun)
  const session = pick(chance, begun.length > 0 && chance.happens(0.6) ? begun : able)
  if (!session) return 'no session is open for a change'
  const { user } = session
  const maySend = session.isOpen && (user.totp === undefined || session.hasFactor)
  const kind = chance.one([
    session.begun ? 'confirm' : 'begin',
    session.begun ? 'confirm' : 'begin',
    'remove',
    'password',
  ])
  const send = (operation: string, body: Json) => world.send(world.request(operation, body, session.token))
  const sameUser = world.sessions.filter((each) => each.user === user && each.begun)
  const secret = (session.begun ?? pick(chance, sameUser)?.begun)?.secret
  if (kind === 'begin') {
    const reply = await send('beginSecondFactor', {})
    if (isOk(reply) && (!maySend || user.totp !== undefined)) throw new Violation('two-step', `begin: ${shown(reply)}`)
    if (isOk(reply)) session.begun = { secret: String(reply.json?.['secret']), untilMs: world.nowMs + 600_000 }
    return `${session.label} begins to add a factor: ${reply.status}`
  }
  if (kind === 'confirm' && secret !== undefined) {
    // A secret is valid for 10 minutes.
    if (chance.happens(0.25)) await world.served.pass(660_000)
    const isOwn = session.begun?.secret === secret && world.nowMs < session.begun.untilMs
    const reply = await send('confirmSecondFactor', { code: codeOf(secret, world.nowMs) })
    const may = maySend && user.totp === undefined && isOwn
    if (isOk(reply) && !may) throw new Violation('two-step', `${session.label} confirmed: ${shown(reply)}`)
    if (isOk(reply)) {
      Object.assign(user, { totp: secret })
      session.hasFactor = true
      world.credentialsChanged(user, session)
      world.reach('factor added')
    }
    return `${session.label} confirms a factor: ${reply.status}`
  }
  if (kind === 'remove' && user.totp !== undefined) {
    const reply = await send('removeSecondFactor', { code: codeOf(user.totp, world.nowMs) })
    if (isOk(reply) && !session.isOpen) throw new Violation('ended-right', `remove: ${shown(reply)}`)
    if (isOk(reply)) {
      user.totp = undefined
      world.credentialsChanged(user)
    }
    return `${session.label} removes the factor: ${reply.status}`
  }
  const [first, second] = PASSWORDS
  const newPassword = user.password === first ? second : first
  const password = chance.happens(0.7) ? (user.password ?? WRONG) : WRONG
  const reply = await send('changePassword', { password, newPassword })
  if (reply.status === 401 && session.isOpen) world.countGuess(`password of ${user.userId}`)
  if (isOk(reply) && (!maySend || password === WRONG)) throw new Violation('two-step', `password: ${shown(reply)}`)
  if (isOk(reply)) {
    user.password = newPassword
    world.guesses.delete(`password of ${user.userId}`)
    world.credentialsChanged(user, session)
    world.reach('password changed')
  }
  return `${session.label} changes the password: ${reply.status}`
}

/** A link of an invitation, or of the command line for a user who exists. */
export const makeLink: RightsStep = async (world, chance, mark) => {
  const isReset = chance.happens(0.4)
  const user = pick(
    chance,
    world.users.filter((each) => !each.isGone && !each.email.startsWith('root@')),
  )
  if (isReset && user) {
    const wanted = { accountId: user.account.accountId, email: user.email, name: '', role: user.role }
    const rights = { storeIds: user.stores?.map(({ storeId }) => storeId) ?? null, sandboxOnly: user.isSandboxOnly }
    const { database, platform } = world.served
    const { token } = await database.write((db) =>
      invite(db, { ...wanted, ...rights, invitedBy: 'command line', mayReplace: true }, platform),
    )
    for (const link of world.links) if (link.user === user) link.isOpen = false
    world.endSessionsOf(user)
    world.links.push({ label: `link ${mark}`, token, user, inviter: undefined, isOpen: true })
    return `a link to reset the password of ${user.email}`
  }
  const by = someone(world, chance)
  if (!by) return 'no manager is signed in'
  const role = chance.one(ROLES.slice(0, 4))
  const email = chance.happens(0.3) ? 'clara@both.example' : `${mark}@${by.user.account.word.toLowerCase()}.example`
  const isSandboxOnly = chance.happens(0.5)
  const known = world.users.find((each) => each.email === email && each.account === by.user.account && !each.isGone)
  const reply = await world.send(world.request('inviteUser', { email, role, sandboxOnly: isSandboxOnly }, by.token))
  const { account, stores } = by.user
  const target = { account, role, stores, isSandboxOnly }
  const may = isAtLeastOf(rightsOf(by))(target, by)
  if (isOk(reply) && !may) throw new Violation('no-right', `inviteUser by ${by.label}: ${shown(reply)}`)
  if (!isOk(reply)) return `${by.label} invites ${email}: ${reply.status}`
  const label = `user ${mark}`
  const userId = String(reply.json?.['userId'])
  const invited: User = known ?? {
    ...target,
    label,
    userId,
    email,
    hasAccepted: false,
    isLinked: false,
    password: undefined,
    totp: undefined,
    isGone: false,
  }
  Object.assign(invited, target)
  if (!known) world.users.push(invited)
  for (const link of world.links) if (link.user === invited) link.isOpen = false
  const token = String(reply.json?.['url']).split('/').at(-1) ?? ''
  world.links.push({ label: `link ${mark}`, token, user: invited, inviter: by.user, isOpen: true })
  return `${by.label} invites ${email} to ${account.label}`
}

/** True if the link is open, and its inviter may still give these rights. */
function isUsable({ isOpen, user, inviter }: Link): boolean {
  if (!isOpen || user.isGone) return false
  if (!inviter) return true
  const mayGive = isAtLeast(inviter.role, 'manager') && isAtLeast(inviter.role, user.role)
  const coversMode = !inviter.isSandboxOnly || user.isSandboxOnly
  return !inviter.isGone && mayGive && coversMode && covers(inviter.stores, user.stores)
}

export const useLink: RightsStep = async (world, chance) => {
  const link = pick(chance, chance.happens(0.7) ? openOnes(world.links) : world.links)
  if (!link) return 'no link was made'
  const password = chance.one(PASSWORDS)
  const may = isUsable(link)
  const reply = await world.send(world.request('acceptInvitation', { token: link.token, name: 'Frau', password }))
  if (isOk(reply) && !may) throw new Violation('ended-right', `acceptInvitation of ${link.user.email}: ${shown(reply)}`)
  if (!isOk(reply)) return `${link.label} of ${link.user.email}: ${reply.status}`
  const { user } = link
  Object.assign(user, { password, totp: undefined, hasAccepted: true })
  world.credentialsChanged(user)
  const mode = reply.json?.['mode'] as Session['mode']
  world.addSession(user, { token: String(reply.json?.['sessionToken']), mode, hasFactor: false })
  world.reach('link used')
  return `${link.label} of ${user.email} is used`
}

/** Signs in at the provider. The person chooses among several accounts. */
export const provider: RightsStep = async (world, chance) => {
  const email = chance.one(['anna@both.example', 'bert@both.example', 'clara@both.example'])
  const begun = await world.send(world.request('beginOpenIdSignIn', {}))
  const body = { flow: begun.json?.['flow'], query: email }
  let reply = await world.send(world.request('finishOpenIdSignIn', body))
  const options = world.users.filter(
    (user) =>
      user.email === email &&
      !user.isGone &&
      (user.hasAccepted || world.links.some((link) => link.user === user && isUsable(link))),
  )
  if (isOk(reply) && options.length > 1)
    throw new Violation('wrong-account', `${email} of ${options.length} accounts was not asked: ${shown(reply)}`)
  const account = chance.one(world.accounts)
  const isChoice = reply.json?.['reason'] === 'several_accounts'
  if (isChoice)
    reply = await world.send(
      world.request('finishOpenIdSignIn', { flow: reply.json?.['flow'], query: '', account: account.name }),
    )
  if (!isOk(reply)) return `${email} signs in at the provider: ${reply.status}`
  const user = options.find(({ userId }) => userId === reply.json?.['userId'])
  if (!user || (isChoice && user.account !== account))
    throw new Violation('wrong-account', `${email} chose ${isChoice ? account.name : 'nothing'}: ${shown(reply)}`)
  // The first sign-in proves the address, so it ends all that the inviter could know.
  if (!user.isLinked || !user.hasAccepted) {
    Object.assign(user, { password: undefined, isLinked: true, ...(!user.hasAccepted && { totp: undefined }) })
    user.hasAccepted = true
    world.credentialsChanged(user)
  }
  if (reply.json?.['state'] === 'active')
    world.addSession(user, {
      token: String(reply.json['sessionToken']),
      mode: reply.json['mode'] as Session['mode'],
      hasFactor: false,
    })
  world.reach('sign-in at the provider')
  return `${email} signs in at the provider to ${user.account.label}`
}
