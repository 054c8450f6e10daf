import { z } from 'zod'
import * as answers from './response-schemas.ts'
import type { AgentErrorCode } from './error-codes.ts'
import * as requests from './request-schemas.ts'

/** Errors of operations that write to the ledger. */
const LEDGER_ERRORS = ['ledger_full', 'ledger_unavailable'] as const

/** The operations of the set-up page, as rows of the table in operations.ts. */
const SETUP_OPERATIONS = {
  findAtAddress: {
    method: 'POST',
    path: '/v1/setup/search',
    callers: 'pages',
    summary: 'Searches for an LLRP reader or a Modbus TCP board at an address.',
    needsCredential: true,
    request: requests.SearchRequest,
    response: answers.SearchAnswer,
    errors: ['busy'],
  },
  addDevice: {
    method: 'POST',
    path: '/v1/setup/devices',
    callers: 'pages',
    summary: 'Registers a device with a set-up code, writes it into the configuration file and connects it.',
    needsCredential: true,
    request: requests.AddDeviceRequest,
    response: answers.AddedDevice,
    errors: [
      'busy',
      'no_config_file',
      'setup_code_wrong',
      'setup_code_used',
      'setup_code_expired',
      'setup_code_needed',
      'registration_refused',
      'cloud_unreachable',
      'config_not_written',
    ],
  },
  changeDevice: {
    method: 'POST',
    path: '/v1/setup/change',
    callers: 'pages',
    summary:
      'Changes or removes a device that the set-up page added in the last 15 minutes. The agent uses changed settings at once, except those about emergencies.',
    needsCredential: true,
    request: requests.ChangeDeviceRequest,
    response: answers.ChangedDevice,
    errors: [
      'busy',
      'change_not_allowed',
      'setup_code_needed',
      'setup_code_expired',
      'setup_code_wrong',
      'registration_refused',
      'cloud_unreachable',
      'config_not_written',
    ],
  },
  testDevice: {
    method: 'POST',
    path: '/v1/setup/test',
    callers: 'pages',
    summary: 'Switches a lamp, the siren or the release of a device that was registered with a set-up code.',
    needsCredential: true,
    request: requests.TestDeviceRequest,
    response: answers.TestedDevice,
    errors: ['busy', 'test_not_allowed', ...LEDGER_ERRORS],
  },
  checkDevice: {
    method: 'POST',
    path: '/v1/setup/check',
    callers: 'pages',
    summary: 'Connects a device again and describes it.',
    needsCredential: true,
    request: requests.CheckDeviceRequest,
    response: answers.DeviceStatus,
    errors: ['busy', 'operator_required', 'not-found'],
  },
  startWalkTest: {
    method: 'POST',
    path: '/v1/setup/walk-test',
    callers: 'pages',
    summary: 'Starts to record which tags a gate sees, for one walk of a walk test.',
    description:
      'An operator must be signed in at the gate, or a set-up code must have registered the gate in the last 15 minutes. At most one walk is under way. Each is recorded as the exception device_tested.',
    needsCredential: true,
    takesSession: true,
    request: requests.StartWalkTestRequest,
    response: answers.Done,
    errors: ['busy', 'operator_required', 'not-found', ...LEDGER_ERRORS],
  },
  walkTest: {
    method: 'GET',
    path: '/v1/setup/walk-test',
    callers: 'pages',
    summary: 'Returns the recording of the last walk of a walk test.',
    needsCredential: true,
    query: requests.WalkTestQuery,
    response: answers.WalkRecording,
    errors: ['invalid-argument', 'not-found'],
  },
} as const

/**
 * An operation of the agent's HTTP API. The table below is the source of validation, of the OpenAPI document and of the
 * types of `untag/agent-client`.
 */
export interface AgentOperation {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  /** Kind of the callers. The OpenAPI document describes only the operations for `programs`. */
  readonly callers: 'programs' | 'pages' | 'agents'
  readonly summary: string
  readonly description?: string
  /** False if any caller in the network may use the operation. */
  readonly needsCredential: boolean
  /** True if programs on the agent's machine need no credential when the configuration sets `requirePairing: false`. */
  readonly openOnMachine?: boolean
  /** True if a program that is paired with the rights of a till (`--may`) may use it. It may use no other. */
  readonly isForTills?: boolean
  /** True if the operation uses the operator's session in `X-Untag-Operator`. */
  readonly takesSession?: boolean
  readonly request?: z.ZodType
  readonly query?: z.ZodType
  readonly response: z.ZodType
  /** Content type of an answer that is not JSON. */
  readonly contentType?: string
  /** A second status with the same body. */
  readonly alsoStatus?: 503
  /** Errors of this operation only. `errorsOf` adds the common errors. */
  readonly errors: readonly AgentErrorCode[]
  /** Example request. */
  readonly example?: Readonly<Record<string, unknown>>
}

const DEVICE_ID = 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

export const AGENT_OPERATIONS = {
  authorize: {
    method: 'POST',
    path: '/v1/authorize',
    callers: 'programs',
    summary: 'Requests a release at a device, and waits for the outcome.',
    description:
      'A denial is an answer with status 200, `authorized: false` and a `reason`. The answer comes when the outcome is known, at most 10 s after the decision. Do not repeat a request whose answer was lost: the device may have moved.',
    needsCredential: true,
    openOnMachine: true,
    takesSession: true,
    request: requests.AuthorizeRequest,
    response: answers.Decision,
    errors: [...LEDGER_ERRORS, 'too_many_requests'],
    example: {
      deviceId: DEVICE_ID,
      protectionAction: 'deactivate_label',
      receipt: 'https://shop.example/R/J5ZXK…',
      epc: '3034257BF7194E4000001A85',
    },
  },
  scan: {
    method: 'POST',
    path: '/v1/scan',
    callers: 'programs',
    summary: 'Handles a scanned text as if the scanner of the device had read it.',
    needsCredential: true,
    openOnMachine: true,
    takesSession: true,
    request: requests.ScanRequest,
    response: answers.ScanResult,
    errors: [...LEDGER_ERRORS, 'too_many_requests'],
    example: { deviceId: DEVICE_ID, text: 'https://shop.example/R/J5ZXK…' },
  },
  recordSale: {
    method: 'POST',
    path: '/v1/sales',
    isForTills: true,
    callers: 'programs',
    summary: 'Records a sale of a till, also without network: its tags are silent at once.',
    description:
      'Durable before the answer. Send it again if the answer was lost: a sale is recorded once, by store, tillId, series and saleId. The program needs the right `sales`, and `tillSales.agents` of the policy must name this agent. What does not fit is a warning, and that tag keeps its status. The cloud answers `recordSales` the same way.',
    needsCredential: true,
    request: requests.SaleRequest,
    response: answers.RecordedSale,
    errors: [
      'right_missing',
      'till_missing',
      'sales_not_allowed',
      'sale_conflict',
      'too_many_open_sales',
      'sale_queue_full',
      'too_many_requests',
      ...LEDGER_ERRORS,
    ],
    example: {
      saleId: '4711',
      tillId: 'till-3',
      series: 'Z-0815',
      occurredAt: '2026-11-20T09:00:00Z',
      totalCent: 8_990,
      lines: [{ name: 'Jacke', quantity: 1, priceUnit: 8_990, vat: 19, epcs: ['3034257BF7194E4000001A85'] }],
    },
  },
  voidSale: {
    method: 'POST',
    path: '/v1/sales/void',
    isForTills: true,
    callers: 'programs',
    summary: 'Voids a sale of a till: its tags alarm again.',
    description:
      'The program needs the right `returns`. A sale that this agent does not know is voided where it is known.',
    needsCredential: true,
    request: requests.VoidSaleRequest,
    response: answers.VoidedSale,
    errors: [
      'right_missing',
      'till_missing',
      'sales_not_allowed',
      'sale_queue_full',
      'too_many_requests',
      ...LEDGER_ERRORS,
    ],
    example: { saleId: '4711', tillId: 'till-3', series: 'Z-0815' },
  },
  recordReturn: {
    method: 'POST',
    path: '/v1/returns',
    isForTills: true,
    callers: 'programs',
    summary: 'Records goods that came back to a till: their tags alarm again.',
    description: 'The program needs the right `returns`. Tagged goods of a line must be named by their tags.',
    needsCredential: true,
    request: requests.SaleReturnRequest,
    response: answers.RecordedReturn,
    errors: [
      'right_missing',
      'sales_not_allowed',
      'sale_conflict',
      'purchase_not_refundable',
      'already_refunded',
      'too_many_waiting_returns',
      'sale_queue_full',
      'too_many_requests',
      ...LEDGER_ERRORS,
    ],
    example: { returnId: 'R-1', epcs: ['3034257BF7194E4000001A85'], resellable: true },
  },
  signIn: {
    method: 'POST',
    path: '/v1/operator',
    callers: 'programs',
    summary: 'Opens an operator’s session, with a badge or a PIN.',
    description: 'With `deviceId`, the operator also approves scans at that device.',
    needsCredential: true,
    request: requests.SignInRequest,
    response: answers.Session,
    errors: ['wrong_credentials', 'locked', 'no_store_key'],
    example: { operatorId: 'op_01KANX9F6G8H1J3K5M7N9P2Q4R', pin: '482913' },
  },
  signedIn: {
    method: 'GET',
    path: '/v1/operator',
    callers: 'programs',
    summary: 'Returns the operator of a session or at a device.',
    needsCredential: true,
    openOnMachine: true,
    takesSession: true,
    query: requests.DeviceQuery,
    response: answers.SignedIn,
    errors: ['invalid-argument'],
  },
  signOut: {
    method: 'DELETE',
    path: '/v1/operator',
    callers: 'programs',
    summary: 'Ends an operator’s session, and signs out the operator at a device.',
    needsCredential: true,
    takesSession: true,
    query: requests.DeviceQuery,
    response: answers.Done,
    errors: ['invalid-argument'],
  },
  operators: {
    method: 'GET',
    path: '/v1/operators',
    callers: 'programs',
    summary: 'Lists the operators of the store.',
    needsCredential: true,
    openOnMachine: true,
    response: answers.OperatorList,
    errors: [],
  },
  handleAlarm: {
    method: 'POST',
    path: '/v1/alarms',
    callers: 'programs',
    summary: 'Acknowledges or disposes of an alarm at a gate, in the name of the signed-in operator.',
    description:
      'Works offline: the agent stores it and sends it to the cloud. The agent accepts only alarms of this gate since its start, at most the last 200 of each gate. A later disposition replaces an earlier one, and an acknowledgement never replaces a disposition. Causes recorded in the console appear here within 15 s. If agent and cloud were apart, the cloud keeps both, and the later one counts.',
    needsCredential: true,
    takesSession: true,
    request: requests.HandleAlarmRequest,
    response: answers.HandledAlarm,
    errors: ['operator_required', 'not-found', 'alarm_disposed', ...LEDGER_ERRORS],
    example: { deviceId: DEVICE_ID, alarmId: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B', step: 'tag_left_on' },
  },
  status: {
    method: 'GET',
    path: '/v1/status',
    isForTills: true,
    callers: 'programs',
    summary: 'Describes the agent and its devices.',
    needsCredential: true,
    openOnMachine: true,
    response: answers.AgentStatus,
    errors: [],
  },
  events: {
    method: 'GET',
    path: '/v1/events',
    callers: 'programs',
    summary: 'Streams results and status changes as server-sent events.',
    description:
      'The data of each event is one JSON object; its `type` is also the name of the event. The first event is the present status. A listener that does not read is disconnected after 500 events.',
    needsCredential: true,
    response: answers.AgentEvent,
    contentType: 'text/event-stream',
    errors: ['too_many_listeners'],
  },
  health: {
    method: 'GET',
    path: '/healthz',
    callers: 'programs',
    summary: 'Reports whether process, ledger and clock work.',
    needsCredential: false,
    response: answers.Health,
    alsoStatus: 503,
    errors: [],
  },
  readiness: {
    method: 'GET',
    path: '/readyz',
    callers: 'programs',
    summary: 'Reports whether the agent has a policy and can decide.',
    needsCredential: false,
    response: answers.Readiness,
    alsoStatus: 503,
    errors: [],
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    callers: 'programs',
    summary: 'Returns metrics in the text format of Prometheus.',
    needsCredential: false,
    response: z.string(),
    contentType: 'text/plain',
    errors: [],
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    callers: 'programs',
    summary: 'Returns this document. It is the same for every agent of a release and contains no secret.',
    needsCredential: false,
    response: z.record(z.string(), z.unknown()),
    errors: [],
  },
  pair: {
    method: 'POST',
    path: '/v1/pair',
    callers: 'pages',
    summary: 'Pairs the browser that opened a one-time link.',
    needsCredential: false,
    request: requests.PairRequest,
    response: answers.Done,
    errors: ['pairing_link_invalid', ...LEDGER_ERRORS],
  },
  ...SETUP_OPERATIONS,
  redeemAtHome: {
    method: 'POST',
    path: '/v1/home/redeem',
    callers: 'agents',
    summary: 'Requests rights from the receipt home. The request is signed.',
    needsCredential: false,
    request: requests.HomeRequest,
    response: answers.SignedAnswer,
    errors: ['not_home', 'too_many_questions', ...LEDGER_ERRORS],
  },
  timeOfHome: {
    method: 'POST',
    path: '/v1/home/time',
    callers: 'agents',
    summary: 'Requests the time from the receipt home. The request is signed.',
    needsCredential: false,
    request: requests.HomeRequest,
    response: answers.SignedAnswer,
    errors: ['not_home', 'too_many_questions', ...LEDGER_ERRORS],
  },
  codeOfHome: {
    method: 'POST',
    path: '/v1/home/code',
    callers: 'agents',
    summary: 'Requests the sales of a code that a till printed from the receipt home. The request is signed.',
    needsCredential: false,
    request: requests.HomeRequest,
    response: answers.SoldNotices,
    errors: ['not_home', 'too_many_questions', ...LEDGER_ERRORS],
  },
  announceTillSales: {
    method: 'POST',
    path: '/v1/till-notices',
    callers: 'agents',
    summary: 'Announces what tills reported to another agent. The notice is signed.',
    needsCredential: false,
    request: requests.TillNoticeRequest,
    response: answers.Done,
    errors: ['sales_refused', 'notices_missing', 'notice_not_genuine', 'too_many_questions', ...LEDGER_ERRORS],
  },
  announceRelease: {
    method: 'POST',
    path: '/v1/releases',
    callers: 'agents',
    summary: 'Announces a release of another agent. The notice is signed.',
    needsCredential: false,
    request: requests.NoticeRequest,
    response: answers.Done,
    errors: ['release_refused', 'notice_not_genuine', 'too_many_questions', ...LEDGER_ERRORS],
  },
} as const satisfies Record<string, AgentOperation>

export type AgentOperations = typeof AGENT_OPERATIONS
export type AgentOperationName = keyof AgentOperations

/** Answer of an operation. */
export type AgentAnswer<N extends AgentOperationName> = z.output<AgentOperations[N]['response']>
/** Body or query of an operation. */
export type AgentRequest<N extends AgentOperationName> = AgentOperations[N] extends {
  readonly request: infer R extends z.ZodType
}
  ? z.input<R>
  : AgentOperations[N] extends { readonly query: infer Q extends z.ZodType }
    ? z.input<Q>
    : undefined

/** Error codes that an answer of the operation can have. */
export function errorsOf({
  needsCredential,
  isForTills,
  request,
  errors,
}: AgentOperation): ReadonlySet<AgentErrorCode> {
  return new Set<AgentErrorCode>([
    'host_not_allowed',
    'origin_not_allowed',
    'internal',
    // Answer while the agent starts.
    'unavailable',
    ...(needsCredential ? (['unauthenticated'] as const) : []),
    ...(needsCredential && isForTills !== true ? (['right_missing'] as const) : []),
    ...(request ? (['invalid-argument', 'unsupported-media-type', 'payload-too-large'] as const) : []),
    ...errors,
  ])
}
