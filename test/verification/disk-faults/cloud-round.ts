import { injectFault } from './inject-fault.ts'
import { taggedProduct, until, type Answer, type FaultStore } from './fault-store.ts'
import type { FaultPoint, RoundResult } from './fault-point.ts'

/** Store without an agent: the test itself redeems tokens at the cloud. */
export interface CloudRoundStore {
  storeId: string
  deviceId: string
  ean: string
}

/** Returns a device and a product of the store without an agent; registers the device if it is missing. */
export async function prepareCloudRound(store: FaultStore): Promise<CloudRoundStore> {
  const storeId = store.otherStoreId
  const { devices } = (await store.call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const known = devices.find((d) => d.deviceType === 'pos_deactivator')?.deviceId
  const made =
    known ??
    (await store.call('registerDevice', { storeId, deviceType: 'pos_deactivator', name: 'Kasse 1' }))['deviceId']
  return { storeId, deviceId: String(made), ean: await taggedProduct(store.call, storeId) }
}

const SETTLE_WITHIN_MS = 60_000
/** Allowed HTTP statuses during a disk fault. The cloud process may also end. */
const WHILE_FAILING: ReadonlySet<number> = new Set([200, 503])

/**
 * Runs a purchase from check-in to redemption while system calls of the cloud fail. Then repeats the requests of the
 * purchase without faults.
 */
export async function cloudRound(
  store: FaultStore,
  till: CloudRoundStore,
  point: FaultPoint,
  name: string,
): Promise<RoundResult> {
  const broken: string[] = []
  const firstAnswers = new Map<string, string>()
  const fault = await injectFault(point, () => store.cloud, store.startCloud)
  if (store.cloud.isRunning) {
    await sell(till, name, async (step, operation, body) => {
      const answer = store.cloud.isRunning ? await store.ask(operation, body, `${name}-${step}`) : undefined
      if (answer && !WHILE_FAILING.has(answer.status))
        broken.push(`${operation} answered ${answer.status} to a disk fault: ${answer.text}`)
      if (answer?.status === 200) firstAnswers.set(step, answer.text)
      return answer
    })
  }
  const hit = await fault.disarm()
  let ended = false

  let redeemed: Answer | undefined
  const isSold = await sell(till, name, async (step, operation, body) => {
    // The cloud may still process the first attempt of this request.
    const answer = await until(
      operation,
      async () => {
        if (!store.cloud.isRunning) {
          ended = point.mode === 'working'
          // Retries the start, because the former process may still hold the port.
          const isStarted = await store.startCloud().then(
            () => true,
            () => false,
          )
          if (!isStarted) return false
        }
        const tried = await store.ask(operation, body, `${name}-${step}`)
        return tried !== undefined && tried.status !== 503 && !tried.text.includes('idempotency_in_progress') && tried
      },
      SETTLE_WITHIN_MS,
    ).catch(() => undefined)
    if (answer?.status !== 200) broken.push(`${operation} fails after the fault: ${answer?.text ?? 'no answer'}`)
    const before = firstAnswers.get(step)
    if (before !== undefined && answer?.text !== before)
      broken.push(`${operation} returned ${before} first and ${answer?.text ?? ''} now`)
    if (step === 'redeem') redeemed = answer
    return answer
  })
  if (isSold && redeemed) await checkUsedOnce(store, till, name, broken)
  return { hit, ended, broken }
}

type Step = (step: string, operation: string, body: object) => Promise<Answer | undefined>

/** Runs the steps of a purchase until one fails. Returns true if all succeeded. */
async function sell({ storeId, deviceId, ean }: CloudRoundStore, name: string, ask: Step): Promise<boolean> {
  const checkedIn = await ask('in', 'checkIn', { storeId, userId: name })
  if (checkedIn?.status !== 200) return false
  const checkout = await ask('checkout', 'startCheckout', {
    sessionId: checkedIn.body['sessionId'],
    items: [{ ean, quantity: 1 }],
  })
  if (checkout?.status !== 200) return false
  const transactionId = checkout.body['transactionId']
  const paid = await ask('pay', 'completeTestCheckout', { transactionId })
  if (paid?.status !== 200) return false
  const verified = await ask('verify', 'verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })
  if (verified?.status !== 200) return false
  const authorizationToken = verified.body['authorizationToken']
  const redeemed = await ask('redeem', 'redeemProtectionAuthorization', {
    authorizationToken,
    deviceId,
    redemptionId: name,
    outcome: 'confirmed',
  })
  return redeemed?.status === 200
}

/** Checks that the cloud refuses the redeemed token under another redemption id. */
async function checkUsedOnce(store: FaultStore, till: CloudRoundStore, name: string, broken: string[]): Promise<void> {
  const { deviceId } = till
  const verify = await store.ask('verifySecurityTagDeactivation', await purchaseOf(store, till, name), `${name}-verify`)
  const answer = await store.ask('redeemProtectionAuthorization', {
    authorizationToken: verify?.body['authorizationToken'],
    deviceId,
    redemptionId: `${name}-again`,
    outcome: 'confirmed',
  })
  if (answer?.status === 200) broken.push(`a token was redeemed twice: ${answer.text}`)
}

async function purchaseOf(
  store: FaultStore,
  { storeId, deviceId, ean }: CloudRoundStore,
  name: string,
): Promise<object> {
  const checkedIn = await store.ask('checkIn', { storeId, userId: name }, `${name}-in`)
  const checkout = await store.ask(
    'startCheckout',
    { sessionId: checkedIn?.body['sessionId'], items: [{ ean, quantity: 1 }] },
    `${name}-checkout`,
  )
  return { purchaseId: checkout?.body['transactionId'], deviceId }
}
