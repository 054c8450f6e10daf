import type { Context, Hono, MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { rightClassOf } from '../../../policy/vocabulary.ts'
import { classifyScan } from '../../decisions/classify-scan.ts'
import type { AuthorizeRequest as Presented } from '../../decisions/request.ts'
import type { SoldByCode } from '../../decisions/sale-codes.ts'
import { contradicting } from '../../items/replica.ts'
import type { Agent } from '../../runtime.ts'
import type { Access } from '../access.ts'
import { failField, failUnpaired, fail, reply } from '../fail.ts'
import { readBody } from '../read-request.ts'
import { AuthorizeRequest, ScanRequest, HandleAlarmRequest } from '../request-schemas.ts'
import { sessionOf } from './operator-routes.ts'

/** Adds the route with which an operator at a gate acknowledges or disposes of an alarm. */
export function alarmRoutes(app: Hono, agent: Agent, access: Access): void {
  app.post('/v1/alarms', async (c) => {
    const body = await readBody(c, HandleAlarmRequest)
    if (body instanceof Response) return body
    const { deviceId, alarmId, step, seen, recoveredCent } = body
    const value = step === 'real' && recoveredCent !== undefined ? { recoveredCent } : {}
    // Unpaired callers must not use the session of the operator at the device.
    if (!access.callerOf(c)) return failUnpaired(c)
    const operator = agent.operators.find(sessionOf(c)) ?? agent.lanes.actingOperatorAt(deviceId)
    if (!operator) return fail(c, 403, 'operator_required', 'no operator is signed in at this gate')
    const handled = await agent.gates.alarms.handle(deviceId, alarmId, {
      step,
      ...operator,
      ...value,
      ...(seen && { seen }),
    })
    if (!handled)
      return fail(
        c,
        404,
        'not-found',
        'this gate has no such alarm since the agent started: dispose of it in the cloud',
      )
    const { state, isChanged } = handled
    if (isChanged)
      return fail(c, 409, 'alarm_disposed', `${state.by || 'a colleague'} recorded ${state.step} meanwhile`)
    return reply(c, 'handleAlarm', { alarmId, ...state })
  })
}

/** Maximum concurrent requests that wait for a decision or outcome. A store has only a few lanes. */
export const DECIDING_LIMIT = 200
/** Maximum of one paired browser or program. A program may serve all lanes of a store. */
export const DECIDING_OF_CALLER = 100

/** Limits the concurrent requests of all routes that use this middleware. Answers further requests with 503. */
export function decisionLimit(access: Pick<Access, 'callerOf'>): MiddlewareHandler {
  let deciding = 0
  const ofCaller = new Map<string, number>()
  return async (c, next) => {
    const callerId = access.callerOf(c)?.id ?? 'this machine'
    const own = ofCaller.get(callerId) ?? 0
    if (deciding >= DECIDING_LIMIT || own >= DECIDING_OF_CALLER) {
      c.header('retry-after', '1')
      return fail(
        c,
        503,
        'too_many_requests',
        `${own >= DECIDING_OF_CALLER ? DECIDING_OF_CALLER : DECIDING_LIMIT} requests wait for their outcome: send this one again later`,
      )
    }
    deciding++
    ofCaller.set(callerId, own + 1)
    return next().finally(() => {
      deciding--
      const left = (ofCaller.get(callerId) ?? 1) - 1
      if (left > 0) ofCaller.set(callerId, left)
      else ofCaller.delete(callerId)
    })
  }
}

/**
 * Routes `authorize` (a program requests an action) and `scan` (a page sends a scanned or typed text). Both routes
 * answer when the outcome is known.
 */
export function decisionRoutes(app: Hono, agent: Agent, access: Access): void {
  const limit = decisionLimit(access)
  /** Returns a function that tells whether the caller and the operator's session are still those of now. */
  function stillAllowed(c: Context): () => boolean {
    const rightsOf = () => `${access.callerOf(c)?.id} ${agent.operators.peek(sessionOf(c))?.operatorId}`
    const atFirst = rightsOf()
    return () => rightsOf() === atFirst
  }
  app.post('/v1/authorize', limit, async (c) => {
    const body = await readBody(c, AuthorizeRequest)
    if (body instanceof Response) return body
    const operator = agent.operators.find(sessionOf(c))
    const isStillAllowed = stillAllowed(c)
    const { deviceId, protectionAction, scanSource, tagUid, tagId, itemLineId } = body
    const isItemNamed = [body.epc, tagUid, tagId, itemLineId].some((name) => name !== undefined)
    const { epc: scannedEpc, ...presented } = await presentedAs(body, isItemNamed, (text) =>
      agent.lanes.saleOfCode(deviceId, text, operator !== undefined),
    )
    const normal = normaliseIdentifiers({ epc: body.epc ?? scannedEpc, tagUid, tagId, itemLineId })
    if (!normal.ok) return failField(c, normal.field, 'invalid', normal.message)
    const contradiction = contradicting(agent.items, normal.identifiers)
    if (contradiction !== undefined)
      return failField(c, contradiction, 'invalid', 'names another item than the other identifier')
    if (Object.keys(normal.identifiers).length === 0 && Object.keys(presented).length === 0) {
      return failField(
        c,
        'receipt',
        'missing',
        'nothing is presented: send a token, a receipt, a scan, or one of epc, tagUid, tagId, itemLineId',
      )
    }
    const answer = await agent.lanes.request({
      deviceId,
      action: protectionAction,
      identifiers: normal.identifiers,
      ...presented,
      ...(scanSource && { scanSource }),
      ...(operator && { operatorId: operator.operatorId }),
      isStillAllowed,
    })
    return reply(c, 'authorize', answer)
  })
  app.post('/v1/scan', limit, async (c) => {
    const body = await readBody(c, ScanRequest)
    if (body instanceof Response) return body
    const { deviceId, text, byHand } = body
    const caller = access.callerOf(c) ?? 'unpaired'
    // Unpaired callers cannot sign operators in.
    if (caller === 'unpaired' && classifyScan(text).kind === 'badge') return failUnpaired(c)
    const operatorId = agent.operators.find(sessionOf(c))?.operatorId
    return reply(
      c,
      'scan',
      await agent.lanes.scan(deviceId, text, { operatorId, byHand, caller, isStillAllowed: stillAllowed(c) }),
    )
  })
}

/** Recognizes a scanned text. Treats an unknown text as a receipt, so that the decision denies it. */
async function presentedAs(
  { token, receipt, scan, protectionAction }: z.output<typeof AuthorizeRequest>,
  isItemNamed: boolean,
  saleOfCode: (text: string) => Promise<SoldByCode>,
): Promise<Pick<Presented, 'token' | 'receipt' | 'sale' | 'isOnlyBarrier'> & { epc?: string }> {
  if (token !== undefined) return { token }
  if (receipt !== undefined) return { receipt }
  if (scan === undefined) return {}
  const scanned = classifyScan(scan)
  if (scanned.kind === 'token') return { token: scanned.text }
  if (scanned.kind === 'epc') return { epc: scanned.epc }
  const sold = scanned.kind === 'unknown' ? await saleOfCode(scan) : undefined
  if (sold?.kind === 'sale') return { sale: sold.sale }
  if (sold?.kind !== 'receipt') return { receipt: scan }
  if (sold.releases) return { receipt: sold.text }
  if (rightClassOf(protectionAction) === 'exit' && !isItemNamed) return { receipt: sold.text, isOnlyBarrier: true }
  // The code only opens a barrier. Tags that its sale names are paid by themselves.
  return isItemNamed ? {} : { receipt: scan }
}
