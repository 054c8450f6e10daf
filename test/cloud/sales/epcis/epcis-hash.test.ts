import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { eventHashId, preHash, type HashedEvent } from '../../../../cloud/sales/epcis/event.ts'

/*
 * Published vectors: tests/examples of github.com/RalphTro/epcis-event-hash-generator (MIT), the reference
 * implementation of the algorithm in CBV 2.0. Its inputs use EPC URNs; here they are the canonical GS1 Digital Links
 * that the standard converts them to before hashing, so the hashes are equal.
 */
const VECTORS: [name: string, event: HashedEvent, hash: string][] = [
  [
    'ReferenceEventHashAlgorithm',
    {
      type: 'ObjectEvent',
      recordTime: '2020-03-04T11:00:30.999+01:00',
      'example:myField3': { 'example:mySubField3': ['3', '1'] },
      'example:myField1': { 'example:mySubField1': '2', 'example:mySubField2': '5' },
      'example:myField2': '0',
      epcList: [
        'https://id.gs1.org/00/040123450000003338',
        'https://id.gs1.org/00/040123450000001112',
        'https://id.gs1.org/00/040123450000002225',
      ],
      action: 'OBSERVE',
      bizStep: 'departing',
      readPoint: { id: 'https://id.gs1.org/414/4012345000115/254/987' },
      eventTimeZoneOffset: '+01:00',
      eventTime: '2020-03-04T10:00:30.000Z',
    },
    '6ae96341e0acc6d7a261364751f60e68278a81cdf51da0abb6b4e617014e39d7',
  ],
  [
    'epcisDocWithSingleEvent',
    {
      type: 'ObjectEvent',
      action: 'OBSERVE',
      bizStep: 'shipping',
      disposition: 'in_transit',
      epcList: ['https://id.gs1.org/01/10614141073464/21/2018', 'https://id.gs1.org/01/10614141073464/21/2017'],
      eventTime: '2022-02-17T02:33:31.116Z',
      eventTimeZoneOffset: '-06:00',
      readPoint: { id: 'https://id.gs1.org/414/0614141073467/254/1234' },
      bizTransactionList: [{ type: 'po', bizTransaction: 'http://transaction.acme.com/po/12345678' }],
    },
    'ffa491b16867e34a7791a8d5389d826afc24e63a121026b6a4004ace38631b4b',
  ],
  [
    'SensorDataExamples, the 4th: a quantity, and four reports of one sensor element',
    {
      type: 'ObjectEvent',
      eventTime: '2019-04-02T14:00:00.000Z',
      eventTimeZoneOffset: '+01:00',
      quantityList: [{ epcClass: 'https://id.gs1.org/01/04023333020008/10/2019-10-07', quantity: 150, uom: 'KGM' }],
      action: 'OBSERVE',
      bizStep: 'inspecting',
      readPoint: { id: 'https://id.gs1.org/414/4012345000054' },
      sensorElementList: [
        {
          sensorMetadata: { time: '2019-04-02T13:55:00.000Z' },
          sensorReport: [
            ['Temperature', '1111', 26, 'CEL'],
            ['Humidity', '1222', 12.1, 'A93'],
            ['Speed', '1333', 160, 'KMH'],
            ['Illuminance', '1444', 800, 'LUX'],
          ].map(([type, id, value, uom]) => ({
            type: `https://gs1.org/voc/MT-${type}`,
            deviceID: `https://id.gs1.org/8004/400000${id}`,
            deviceMetadata: `https://id.gs1.org/8004/400000${id}`,
            rawData: 'https://id.gs1.org/8004/401234599999',
            value,
            uom,
          })),
        },
      ],
    },
    'e3885506be880e60f989004e32fb645d42ecb3b7e459fe5c8a904249092cc9bf',
  ],
  [
    'SensorDataExamples, the 9th: conditions of alarm and error',
    {
      type: 'ObjectEvent',
      eventTime: '2020-05-07T15:00:00.000Z',
      eventTimeZoneOffset: '+01:00',
      epcList: ['https://id.gs1.org/01/04012345111118/21/9876'],
      action: 'OBSERVE',
      bizStep: 'sensor_reporting',
      readPoint: { id: 'https://id.gs1.org/414/4012345000054' },
      sensorElementList: [
        {
          sensorReport: [
            { type: 'https://gs1.org/voc/AT-Alarm_condition', booleanValue: true },
            { type: 'https://gs1.org/voc/AT-Error_condition', uriValue: 'https://example.com/ErrorCode-A827' },
          ],
        },
      ],
    },
    '6d4c921acaba468379c26e1021b2554445bf631db2d1e7f74634997f953e8776',
  ],
  [
    'epcisDocWithSensorComponent',
    {
      type: 'ObjectEvent',
      eventTime: '2022-04-07T10:00:00.000Z',
      eventTimeZoneOffset: '+01:00',
      epcList: ['https://id.gs1.org/8003/040123450007718765'],
      action: 'OBSERVE',
      bizStep: 'sensor_reporting',
      readPoint: { id: 'https://id.gs1.org/414/4012345000054' },
      sensorElementList: [
        {
          sensorReport: ['latitude', 'longitude'].map((component, i) => ({
            type: 'https://gs1.org/voc/Angle',
            value: [42.698334, 23.319941][i],
            component,
            uom: 'DD',
            coordinateReferenceSystem: 'http://www.opengis.net/def/crs/OGC/1.3/CRS84',
          })),
        },
      ],
    },
    'bb12b0e4a573819c15796579560efbe6bd5e337f5c8c5cdf81f983a39947f629',
  ],
]
const NAMESPACES = { 'example:': 'https://ns.example.com/epcis/' }

it.each(VECTORS)('equals the published vector %s', (_name, event, hash) => {
  expect(eventHashId(event, NAMESPACES)).toBe(`ni:///sha-256;${hash}?ver=CBV2.0`)
})

it('includes an exception like the published CertificationInfoAndSensorReportWithCRS', () => {
  const event = {
    type: 'ObjectEvent',
    sensorElementList: [
      { sensorReport: [{ type: 'https://gs1.org/voc/Dimensionless', exception: 'ALARM_CONDITION' }] },
    ],
  }
  expect(preHash(event)).toBe(
    'eventType=ObjectEventsensorElementListsensorElementsensorReporttype=https://gs1.org/voc/Dimensionlessexception=https://gs1.org/voc/ALARM_CONDITION',
  )
})

/** The same object with fields and lists in another order. */
function shuffled<T>(value: T, order: readonly number[]): T {
  if (Array.isArray(value))
    return value.map((each) => shuffled(each as unknown, order)).sort((_a, _b) => ((order[0] ?? 0) % 2) - 0.5) as T
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(
    ([name, each], i) => [name, shuffled(each as unknown, order), order[i % order.length] ?? 0] as const,
  )
  return Object.fromEntries(entries.sort((a, b) => a[2] - b[2]).map(([name, each]) => [name, each])) as T
}

it('is independent of the order of fields and lists, and differs after any change', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...VECTORS),
      fc.array(fc.nat(100), { minLength: 1, maxLength: 20 }),
      ([, event], order) => {
        expect(preHash(shuffled(event, order), NAMESPACES)).toBe(preHash(event, NAMESPACES))
        expect(preHash({ ...event, 'example:more': 'x' }, NAMESPACES)).not.toBe(preHash(event, NAMESPACES))
        expect(preHash({ ...event, recordTime: '2026-01-01T00:00:00.000Z', eventID: 'urn:x' }, NAMESPACES)).toBe(
          preHash(event, NAMESPACES),
        )
      },
    ),
  )
  expect(eventHashId({ type: 'X' })).toBe(
    `ni:///sha-256;${createHash('sha256').update('eventType=X').digest('hex')}?ver=CBV2.0`,
  )
})
