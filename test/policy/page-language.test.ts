import { describe, expect, it } from 'vitest'
import { acceptRanges, prefersHtml, pageLanguage } from '../../policy/page-language.ts'

describe('the language of a page', () => {
  it.each([
    // Only the header Accept-Language is set.
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE-ch-1996', 'de'],
    ['en-GB,en;q=0.9,de;q=0.8', 'en'],
    ['en;q=0.5,de;q=0.9', 'de'],
    ['de;q=0.8, en;q=0.8', 'de'],
    ['en;q=0.8, de;q=0.8', 'en'],
    ['fr-FR,fr;q=0.9,de;q=0.5,en;q=0.3', 'de'],
    ['fr, de-AT;q=0.1, de;q=0.9, en;q=0.5', 'de'],
    ['fr', 'en'],
    ['*', 'en'],
    ['fr, *;q=0.5', 'en'],
    ['en;q=0, *', 'de'],
    ['de;q=0, *;q=0.1', 'en'],
    ['de;q=0', 'en'],
    // Other languages that begin with the same letters.
    ['den, deu;q=0.9', 'en'],
    // Malformed headers.
    ['de;q=2, en;q=0.1', 'en'],
    ['de;q=x', 'en'],
    [';;;,,,q=1', 'en'],
    [`${'fr,'.repeat(2_000)}de`, 'en'],
  ] as const)('of a browser that sends %j is %s', (accepted, language) => {
    expect(pageLanguage({ requested: undefined, remembered: undefined, accepted })).toBe(language)
  })

  it.each([
    ['en', 'de', 'de', 'de', 'en'],
    [undefined, 'en', 'de', 'de', 'en'],
    [undefined, undefined, 'de', 'en', 'de'],
    [undefined, undefined, undefined, 'de', 'de'],
    ['fr', 'x', undefined, 'de', 'de'],
    ['DE', '__proto__', undefined, undefined, 'en'],
  ] as const)(
    'with switch %s, cookie %s, configuration %s and browser %s is %s',
    (requested, remembered, configured, accepted, language) => {
      expect(pageLanguage({ requested, remembered, configured, accepted })).toBe(language)
    },
  )
})

describe('prefersHtml', () => {
  it.each([
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['text/html', true],
    ['text/html;level=1;q=0.5, application/json;q=0.4', true],
    ['text/html, application/json', false],
    ['application/json, text/html;q=0.9', false],
    ['application/json, text/plain, */*', false],
    ['*/*', false],
    ['text/*', false],
    ['text/html;q=0', false],
    ['', false],
    [undefined, false],
  ])('of the Accept header %j is %s', (accept, isPage) => expect(prefersHtml(accept)).toBe(isPage))

  it('reads only the beginning of a long header', () => {
    expect(acceptRanges('a,'.repeat(100_000)).length).toBeLessThanOrEqual(500)
  })
})
