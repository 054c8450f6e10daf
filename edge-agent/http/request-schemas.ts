import { z } from 'zod'
import { MAX_RECOVERED_CENT } from '../../policy/journal.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { SaleNames, TillReturn, TillSale } from '../../policy/till-sale.ts'
import { TESTED_OUTPUTS } from '../setup/setup.ts'
import {
  ALARM_DISPOSITIONS,
  ALARM_STEPS,
  DEVICE_TYPES,
  PROTECTION_ACTIONS,
  SCAN_SOURCES,
} from '../../policy/vocabulary.ts'

/** Schemas of requests, for validation and for the OpenAPI document. */

const DeviceId = z.string().min(1).max(128).describe('Id of a device of this agent.')

export const AuthorizeRequest = z
  .strictObject({
    deviceId: DeviceId,
    protectionAction: z.enum(PROTECTION_ACTIONS),
    token: z.string().max(4_096).optional().describe('Authorization token of the cloud.'),
    receipt: z.string().max(4_096).optional().describe('Receipt token, or the scanned text of a receipt.'),
    scan: z
      .string()
      .max(4_096)
      .optional()
      .describe('Scanned text of any kind: receipt, token, EPC or the code of a till.'),
    epc: z.string().max(200).optional().describe('EPC of the tag, in hex or as an SGTIN URI.'),
    tagUid: z.string().max(40).optional().describe('UID of an NFC tag, in hex.'),
    tagId: z.string().max(128).optional().describe('Number that is printed on the tag.'),
    itemLineId: z.string().max(128).optional().describe('Line of the purchase.'),
    scanSource: z.enum(SCAN_SOURCES).optional(),
  })
  .describe('Needs a token, a receipt, a scan, or one of epc, tagUid, tagId and itemLineId.')

export const ScanRequest = z.strictObject({
  deviceId: DeviceId,
  text: z.string().min(1).max(4_096).describe('The scanned or typed text.'),
  byHand: z.boolean().optional().describe('True if the operator at the device typed the text or pressed a button.'),
})

export const SignInRequest = z.union([
  z.strictObject({
    badge: z.string().min(1).max(200).describe('Scanned text of a badge.'),
    deviceId: DeviceId.optional(),
  }),
  z.strictObject({
    operatorId: z.string().min(1).max(128),
    pin: z
      .string()
      .regex(/^\d{4,12}$/)
      .describe('A registered PIN has 6 to 12 digits.'),
    deviceId: DeviceId.optional(),
  }),
])

export const HandleAlarmRequest = z.strictObject({
  deviceId: DeviceId,
  alarmId: z.string().min(1).max(128).describe('`alarmId` of a result of the gate.'),
  step: z
    .enum(ALARM_STEPS)
    .describe(
      'acknowledged: the operator takes care of the alarm. Otherwise its disposition. real: theft. unintentional: the shopper forgot to pay. tag_left_on: the goods are paid, but the tag is still active. staff_error: staff carried goods out. phantom: no goods left.',
    ),
  recoveredCent: z
    .int()
    .min(0)
    .max(MAX_RECOVERED_CENT)
    .optional()
    .describe('Value of recovered goods, in cents. It counts for `real` only.'),
  seen: z
    .enum(['none', ...ALARM_DISPOSITIONS])
    .optional()
    .describe(
      'Disposition that the operator has seen, or `none`. If the alarm has another one, the call fails with 409 `alarm_disposed`.',
    ),
})

export const DeviceQuery = z.strictObject({ deviceId: DeviceId.optional() })

/** A sale of a till (policy/till-sale.ts). An agent takes no customer. */
export const SaleRequest = TillSale
export const VoidSaleRequest = z.strictObject({ ...SaleNames, reason: z.string().min(1).max(300).optional() })
export const SaleReturnRequest = TillReturn

/** The code of a one-time link. */
export const PairRequest = z.strictObject({ code: z.string().min(1).max(200) })
/** A signed home request of another agent. */
export const HomeRequest = z.strictObject({ question: z.string().max(8_192) })
/** A signed release notice of another agent. */
export const NoticeRequest = z.strictObject({ notice: z.string().max(4_096) })
export const TillNoticeRequest = z.strictObject({ notice: z.string().max(DOCUMENT_KINDS.tillNotice.maxLength) })

/** Host name or IPv4 address, with a port if it is not the usual one of the device. */
const Address = z
  .string()
  .regex(/^[A-Za-z0-9.-]{1,200}(:\d{1,5})?$/, 'give a host name or an IPv4 address, with a port if not 5084 or 502')
  .refine((address) => Number(address.split(':')[1] ?? 1) <= 65_535, 'the port is above 65535')
export const SearchRequest = z.strictObject({ address: Address })
/** Configuration entry of a device, which `readConfig` validates, and its registration with a set-up code. */
export const AddDeviceRequest = z.strictObject({
  entry: z.record(z.string().max(100), z.unknown()),
  registration: z
    .strictObject({
      code: z.string().trim().min(1).max(60),
      deviceType: z.enum(DEVICE_TYPES),
      name: z.string().trim().min(1).max(120).optional(),
    })
    .optional(),
})
/** Without `entry`, the device is removed. */
export const ChangeDeviceRequest = z.strictObject({
  deviceId: DeviceId,
  entry: z.record(z.string().max(100), z.unknown()).optional(),
  name: z
    .string()
    .trim()
    .min(1)
    .max(120)
    .optional()
    .describe('Only with `entry`, for a device that a set-up code registered.'),
})
export const TestDeviceRequest = z.strictObject({ deviceId: DeviceId, output: z.enum(TESTED_OUTPUTS) })
export const CheckDeviceRequest = z.strictObject({ deviceId: DeviceId })
export const StartWalkTestRequest = z.strictObject({
  deviceId: DeviceId,
  seconds: z.int().min(1).max(120).describe('Duration of the recording, s.'),
})
export const WalkTestQuery = z.strictObject({ deviceId: DeviceId })
