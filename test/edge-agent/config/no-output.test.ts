import { afterEach, expect, it } from 'vitest'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { scannerSimulator, type ScannerSimulator } from '../../../simulators/devices/scanner.ts'
import { openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

it('a handheld reader without output shows the status of an item, and releases nothing', async () => {
  let scanner: ScannerSimulator | undefined
  let deviceId = ''
  store = await openStore({
    extra: async (shop, world) => {
      scanner = scannerSimulator({ platform: world })
      const handheld = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'handheld_reader' })
      deviceId = handheld.deviceId
      const { serve } = scanner
      return {
        entries: [{ deviceId, driver: 'scanner', link: { tcp: '10.0.0.9:4001' } }],
        ports: { '10.0.0.9:4001': (link) => serve(link) },
      }
    },
  })
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  const seen: unknown[] = []
  void (async () => {
    for await (const event of store.agent.feed.listen(new AbortController().signal)) seen.push(event)
  })()
  await scanner?.scan(epc)
  await store.until('the result', () => seen.some((event) => JSON.stringify(event).includes('verify_item_status')))
  expect(JSON.stringify(seen)).toContain('"itemStatus":"sellable"')
})

it('a gate with only a siren sounds it for unpaid goods, and stays silent for paid ones', async () => {
  let board: RelayBoard | undefined
  const switched: number[] = []
  store = await openStore({
    extra: async (shop, world) => {
      board = new RelayBoard({ platform: world, onChange: ({ coil, on }) => void (on && switched.push(coil)) })
      const { serve } = board
      return {
        entries: [
          {
            deviceId: shop.devices.exit_gate,
            driver: 'modbus',
            link: { tcp: '10.0.0.8:502' },
            siren: { output: 3, seconds: 2 },
          },
        ],
        ports: { '10.0.0.8:502': (link) => serve(link) },
      }
    },
  })
  const [product] = store.shop.products
  const { exit_gate: gate } = store.shop.devices
  const leave = (epc: string) => store.authorize({ deviceId: gate, protectionAction: 'authorize_exit', epc })
  const unpaid = await store.drive(store.shop.newItem(product))
  expect(await leave(unpaid.epc)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  await store.world.advance(3_000)
  expect(switched).toEqual([3])
  const paid = await store.drive(store.shop.newItem(product))
  await store.buy([{ ean: product.ean, quantity: 1, epcs: [paid.epc] }])
  expect(await leave(paid.epc)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  await store.world.advance(3_000)
  expect(switched).toEqual([3])
})
