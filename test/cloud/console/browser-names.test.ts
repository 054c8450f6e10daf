import { expect, it } from 'vitest'
import { browserAndSystem } from '../../../cloud/console/pages/profile.tsx'

/** Texts of real browsers, each with names of older ones. */
it.each([
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0',
    ['Microsoft Edge', 'Windows'],
  ],
  [
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36',
    ['Chrome', 'Android'],
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1',
    ['Safari', 'iOS'],
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/141.0 Mobile/15E148 Safari/604.1',
    ['Chrome', 'iOS'],
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0', ['Firefox', 'Linux']],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
    ['Safari', 'macOS'],
  ],
  ['curl/8.5.0', undefined],
  ['', undefined],
])('names browser and system of %s', (userAgent, names) => {
  expect(browserAndSystem(userAgent)).toEqual(names)
})
