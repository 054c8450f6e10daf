import { z } from 'zod'
import { FINDING_CODES } from '../../device-drivers/kit/device.ts'
import { REGISTRATION_FAULTS } from '../health/registration.ts'
import { DEVICE_FINDINGS, SEARCH_CAUSES } from '../setup/device-discovery.ts'
import {
  ALARM_STEPS,
  DENY_REASONS,
  ITEM_FACT_NAMES,
  ITEM_STATUSES,
  OUTCOMES,
  PROTECTION_ACTIONS,
} from '../../policy/vocabulary.ts'

/**
 * Schemas of the answers, for the OpenAPI document. The schemas are strict, so that tests find fields that no schema
 * describes. Callers must still accept unknown fields.
 */

const Time = z.string().describe('ISO 8601, UTC.')
const Count = z.int().min(0)

export const Decision = z
  .strictObject({
    authorized: z.boolean(),
    action: z.enum(PROTECTION_ACTIONS),
    expiresAt: Time.nullable(),
    itemCount: Count.describe('Units that this decision covers.'),
    remaining: Count.describe('Units of the receipt or token that are not released yet.'),
    eventId: z.string().nullable().describe('Id of the recorded event.'),
    reason: z.enum(DENY_REASONS).optional().describe('Reason of the denial.'),
    offline: z.boolean().describe('True if the agent decided without the cloud.'),
    outcome: z.enum(OUTCOMES).nullable().describe('What the device did. null if no device was actuated.'),
    itemStatus: z.enum(ITEM_STATUSES).optional(),
    statusAgeSeconds: z.number().min(0).optional().describe('Age of itemStatus, s.'),
    unknownFacts: z
      .array(z.enum(ITEM_FACT_NAMES))
      .min(1)
      .optional()
      .describe('Facts that a rule needs and the agent lacks. The strictest rule applied.'),
  })
  .meta({ id: 'Decision' })

const Synced = z.boolean().describe('True once the cloud has it. Until then it is only on the disk of this agent.')
const TagStatus = z.strictObject({ tag: z.string(), itemStatus: z.enum(ITEM_STATUSES) })

export const RecordedSale = z.strictObject({
  saleId: z.string(),
  synced: Synced,
  receiptToken: z
    .string()
    .optional()
    .describe(
      'For a QR code on the printed receipt: it opens a barrier once, also without network. Absent if the sale gives no rights, or without trusted time.',
    ),
  items: z.array(z.strictObject({ lineId: z.string(), tag: z.string(), itemStatus: z.enum(ITEM_STATUSES).optional() })),
  warnings: z
    .array(
      z.strictObject({
        code: z.string(),
        message: z.string(),
        lineId: z.string().optional(),
        tag: z.string().optional(),
      }),
    )
    .describe('What is doubtful. A tag with a warning keeps its status; an unknown tag is silent once it is known.'),
})

export const VoidedSale = z.strictObject({
  saleId: z.string(),
  synced: Synced,
  waiting: z.boolean().describe('True if this agent does not know the sale: the void applies where it is known.'),
  items: z.array(TagStatus),
})

export const RecordedReturn = z.strictObject({
  returnId: z.string(),
  synced: Synced,
  waiting: z
    .boolean()
    .describe('True if this agent does not know the goods of the sale: they alarm when it, or the cloud, knows them.'),
  items: z.array(TagStatus),
})

const Order = z.strictObject({
  orderId: z.string(),
  status: z.string(),
  items: z.array(
    z.strictObject({
      name: z.string(),
      quantity: z.number(),
      tags: Count.describe('Tagged items that are reserved for the order.'),
    }),
  ),
  note: z.string().optional(),
})

const Goods = z
  .array(
    z
      .strictObject({
        name: z.string().optional().describe('Name of the product, if it is the only one with these facts.'),
        category: z.string(),
        brand: z.string(),
        priceCent: Count,
        quantity: Count,
      })
      .describe('Units.'),
  )
  .optional()
  .describe('Goods of the receipt that are not released yet; category and brand may be empty. Absent if unknown.')

const UsedReceipt = z
  .strictObject({
    at: Time,
    deviceName: z.string().optional().describe('Absent if the device has no name.'),
  })
  .optional()
  .describe(
    'The last release by a receipt that has nothing left to release. Absent if it was not released at this agent.',
  )

export const ScanResult = z
  .union([
    z.strictObject({
      kind: z.literal('decision'),
      answer: Decision,
      item: z.string().optional().describe('The named tag or line.'),
      product: z.string().optional().describe('Name of its product, if the agent knows it.'),
      picture: z
        .string()
        .optional()
        .describe('SHA-256 of its small picture, base64url; the agent serves it at /pictures/{picture}.webp.'),
      next: Goods,
      forStaff: z
        .int()
        .min(1)
        .optional()
        .describe('Further goods of the receipt, which only staff release at this device. Absent if there are none.'),
      alarmId: z.string().optional().describe('Id of a gate alarm, for handleAlarm.'),
      emergency: z.literal(true).optional().describe('The alarm was raised during an emergency.'),
      used: UsedReceipt,
    }),
    z.strictObject({ kind: z.literal('operator'), name: z.string() }).describe('An operator signed in.'),
    z
      .strictObject({ kind: z.literal('receipt'), left: Count, next: Goods, used: UsedReceipt })
      .describe('A receipt that covers the tags that follow. left: units that are not released yet.'),
    z.strictObject({
      kind: z.literal('alarm'),
      what: z.enum(['unexpected_release', 'door_forced', 'door_left_open']),
    }),
    z.strictObject({ kind: z.literal('order'), order: Order }).describe('The order of a pick-up code.'),
    z.strictObject({
      kind: z.literal('not_understood'),
      why: z.enum([
        'unknown_code',
        'needs_connection',
        'needs_staff',
        'purchase_not_paid',
        'receipt_expired',
        'number_ambiguous',
        'code_for_exit',
        'unknown_code_or_number',
        'product_code',
        'wrong_badge',
        'locked',
        'no_store_key',
        'out_of_order',
      ]),
    }),
  ])
  .meta({ id: 'ScanResult' })

export const DeviceStatus = z
  .strictObject({
    deviceId: z.string(),
    driver: z.string(),
    state: z
      .enum(['absent', 'opening', 'identifying', 'ready', 'degraded', 'stopped', ...REGISTRATION_FAULTS])
      .describe(
        'State of the hardware. unknown_device, device_of_another_agent and decommissioned_device: the agent refuses every request for this device; detail names the fix.',
      ),
    since: z.number().describe('When the state began, ms since 1970.'),
    detail: z.string().describe('Reason, as text.'),
    identity: z
      .strictObject({
        description: z.string(),
        firmwareVersion: z.string().optional(),
        serialNumber: z.string().optional(),
      })
      .optional()
      .describe('The device that last answered at this address.'),
    findings: z
      .array(
        z.strictObject({
          code: z.enum(FINDING_CODES),
          detail: z.string().describe('What is wrong, the setting to change, and its new value.'),
          isWarning: z.boolean().describe('True: the device stays ready. False: it is degraded.'),
        }),
      )
      .describe('What a person must change at the connected device.'),
  })
  .meta({ id: 'DeviceStatus' })

const StoreDevice = DeviceStatus.extend({
  name: z.string().nullable(),
  deviceType: z.string().nullable(),
  feeds: z.string().nullable().describe('The device that receives the reads or scans of this one.'),
  door: z.enum(['shut', 'open', 'forced', 'left_open']).nullable().optional(),
}).meta({ id: 'StoreDevice' })

export const AgentStatus = z
  .strictObject({
    agentId: z.string(),
    storeId: z.string(),
    storeName: z.string().nullable(),
    online: z.boolean().describe('True if the agent reaches the cloud.'),
    offlineSince: Time.nullable(),
    broker: z.boolean(),
    queueDepth: Count.describe('Journal rows that the cloud does not have yet.'),
    policyVersion: Count.nullable(),
    stage: z.enum(['fresh', 'stale', 'expired']).describe('Age of the policy.'),
    isOvertaken: z.boolean().describe('True if tokens name newer documents than the agent has.'),
    release: z.string().describe('Release of this program.'),
    neededRelease: z.string().nullable().describe('Release that the policy of the store needs, if it is newer.'),
    clock: z.enum(['signed', 'rtc', 'home', 'none']).describe('Source of the trusted time.'),
    now: Time,
    isHome: z.boolean(),
    ledgerDoubt: z
      .enum(['revoked', 'forked', 'put_back'])
      .nullable()
      .describe('Why the agent releases nothing without the cloud.'),
    items: z.strictObject({ known: Count, ageSeconds: z.number().min(0).nullable() }),
    devices: z.array(StoreDevice),
    emergency: z
      .strictObject({
        since: Time,
        inputs: z.array(z.string()).describe('Devices whose emergency input is active.'),
        lost: z.array(z.string()).describe('Active inputs that the agent cannot read.'),
        opened: z.array(z.string()).describe('Devices that the agent holds open.'),
        silent: z.boolean().describe('True if sirens are off.'),
      })
      .nullable()
      .describe('Emergency of a fire panel or switch at a wired input. null if there is none.'),
    fault: z.string().nullable().describe('Why the agent releases nothing.'),
    isRestartDue: z.boolean().describe('True if changes of the set-up page wait for a restart of the agent.'),
  })
  .meta({ id: 'AgentStatus' })

const AlarmState = {
  step: z.enum(ALARM_STEPS).describe('What a person did last.'),
  by: z.string().describe('Name of the person, at the gate or in the console. Empty if unknown.'),
}
export const HandledAlarm = z.strictObject({ alarmId: z.string(), ...AlarmState })

export const AgentEvent = z
  .union([
    z
      .strictObject({ type: z.literal('status'), status: AgentStatus })
      .describe('Status of the agent: the first event, and after each change.'),
    z.strictObject({
      type: z.literal('result'),
      deviceId: z.string(),
      atMs: z.number(),
      result: ScanResult,
      light: z
        .enum(['green', 'amber', 'siren'])
        .nullable()
        .optional()
        .describe('Light of the gate. Only for decisions at gates.'),
    }),
    z
      .strictObject({ type: z.literal('operator'), deviceId: z.string(), name: z.string().nullable() })
      .describe('An operator signed in or out at the device.'),
    z
      .strictObject({
        type: z.literal('person'),
        deviceId: z.string(),
        direction: z.enum(['in', 'out']),
        count: Count.describe('Persons in this direction since the start.'),
      })
      .describe('A person passed the gate.'),
    z
      .strictObject({ type: z.literal('alarm'), deviceId: z.string(), alarmId: z.string(), ...AlarmState })
      .describe('A person handled an alarm of the gate, here or in the console.'),
  ])
  .meta({ id: 'AgentEvent' })

export const Done = z.strictObject({ success: z.literal(true) })

export const Session = z.strictObject({
  session: z.string().describe('Send it as X-Untag-Operator. It is a secret.'),
  operatorId: z.string(),
  name: z.string(),
  idleSeconds: z.int().describe('Idle time after which the session ends, s.'),
})

export const SignedIn = z.strictObject({ name: z.string().nullable().describe('null if no operator is signed in.') })

export const OperatorList = z.strictObject({
  operators: z.array(z.strictObject({ operatorId: z.string(), name: z.string(), hasPin: z.boolean() })),
})

export const Health = z.strictObject({
  ok: z.boolean(),
  ledger: z.string().describe('`ok`, or the fault.'),
  clock: z.enum(['signed', 'rtc', 'home', 'none']),
})

export const Readiness = z.strictObject({
  ready: z.boolean(),
  unready: z
    .array(z.strictObject({ check: z.enum(['ledger', 'disk', 'policy']), reason: z.string() }))
    .describe('Why the agent is not ready, with what to do.'),
  online: z.boolean(),
  emergency: z.boolean().describe('True while a wired emergency input is active.'),
  policyVersion: Count.nullable(),
  devices: z.array(DeviceStatus.pick({ deviceId: true, state: true, detail: true, findings: true })),
})

export const WalkRecording = z.strictObject({
  deviceId: z.string(),
  isOver: z.boolean().describe('True if the time of the recording has passed.'),
  tags: z.array(
    z.strictObject({
      epc: z.string().optional(),
      tagUid: z.string().optional(),
      reads: Count,
      antennas: z.array(Count),
      left: z
        .strictObject({ reason: z.string(), severity: z.enum(['pass', 'silent', 'notify', 'siren']) })
        .nullable()
        .describe('How the gate assessed the tag when it left. null if the gate did not see it leave.'),
    }),
  ),
})

export const SoldNotices = z.strictObject({
  notices: z.array(z.string()).describe('Signed notices of the agents that recorded the sales of the code.'),
})
export const SignedAnswer = z.strictObject({ answer: z.string() })

export const SearchAnswer = z.union([
  z.strictObject({
    found: z.strictObject({
      kind: z.enum(DEVICE_FINDINGS),
      name: z.string(),
      at: z.string(),
      fix: z.string().optional(),
      entry: z.record(z.string(), z.unknown()),
    }),
  }),
  z.strictObject({ fault: z.string(), cause: z.enum(SEARCH_CAUSES).optional() }),
])
export const ChangedDevice = z.strictObject({
  file: z.string(),
  isInUse: z.boolean().describe('False if the agent must be restarted.'),
})
export const AddedDevice = z.strictObject({
  file: z.string(),
  deviceId: z.string(),
  isInUse: z.boolean().describe('False if the agent must be restarted, because the file has other changes too.'),
})
export const TestedDevice = z.strictObject({ outcome: z.enum(OUTCOMES), detail: z.string() })

export const AgentFault = z
  .strictObject({
    error: z.string().describe('What happened.'),
    code: z.string(),
    fix: z.string().describe('What to do next.'),
    details: z
      .array(z.strictObject({ path: z.string(), code: z.string(), message: z.string() }))
      .optional()
      .describe('The wrong fields of the request.'),
  })
  .meta({ id: 'AgentFault' })
