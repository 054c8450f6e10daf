import { describe, expect, test } from 'vitest'
import { antennaWatch } from '../../device-drivers/kit/noise-report.ts'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'

const read = (antenna?: number) => ({
  tag: { epc: '3034' },
  seenAtMs: 0,
  ...(antenna === undefined ? {} : { antenna }),
})

function watched(antennas = { inside: [1], outside: [2] }) {
  const events: DeviceEvent[] = []
  const watch = antennaWatch(antennas, (event) => void events.push(event))
  const see = (...numbers: (number | undefined)[]) => watch.add(numbers.map(read))
  return { watch, events, see, details: () => watch.findings.map(({ detail }) => detail) }
}

describe('the watch of the antennas', () => {
  test('names an antenna that the reader does not detect, until it is connected or reads', () => {
    const { watch, events, see, details } = watched()
    watch.setConnected(2, false)
    watch.setConnected(7, false)
    expect(details()).toEqual(['antenna 2 (outside): not connected; check the cable'])
    watch.setConnected(2, true)
    watch.setConnected(1, false)
    see(1)
    expect(details()).toEqual([])
    expect(events.map(({ type }) => type)).toEqual(['finding', 'finding_over', 'finding', 'finding_over'])
  })

  test('names the port of a cable that is plugged in elsewhere, and the setting for it', () => {
    const { see, details } = watched()
    see(1, 3, 3)
    expect(details()).toEqual([])
    see(3, 1)
    expect(details()).toEqual([
      'antenna 3 reads and is not in "antennas", and no antenna of "outside" has read yet: set "outside": [3], or use antenna 2 for it',
    ])
    // A further antenna of the reader serves another place.
    see(2, 3, 3, 3)
    expect(details()).toEqual([])
  })

  test('reports reads that name no antenna, until one does', () => {
    const { see, details } = watched()
    see(undefined, undefined)
    expect(details()).toEqual([])
    see(undefined)
    expect(details()).toEqual([expect.stringContaining('let the reader report the antenna of each read')])
    see(1)
    expect(details()).toEqual([])
  })

  test('finds nothing at a reader without "antennas"', () => {
    const watch = antennaWatch(undefined, () => expect.unreachable())
    watch.setConnected(1, false)
    watch.add([read(), read(), read(), read(9)])
    expect(watch.findings).toEqual([])
  })
})
