import { invalid } from '../../foundation/failure.ts'
import { EMPTY_ROWS_LIMIT, isEmptyRow, limitedRow, tooManyEmptyRows, type Sheet, type SheetRow } from './sheet.ts'

/**
 * Reads comma-separated text as spreadsheet programs do, in several encodings and with any separator. A file of
 * 10,000 rows must not fail for one wrong quotation mark, which is an error of the whole file for a parser of RFC 4180.
 */

const SEPARATORS = [',', ';', '\t'] as const
/** Maximum characters per row. A valid row has fewer than 2,000. */
const ROW_LIMIT = 100_000

/** Rows of a CSV file. Throws 400 for a binary file. */
export function readCsvSheet(file: Buffer): Sheet {
  const { text, warnings } = decode(file)
  const [named, separator] = /^"?sep=([^\r\n])"?[ \t]*(?:\r\n?|\n|$)/i.exec(text) ?? []
  const table = named === undefined ? text : text.slice(named.length)
  return { rows: rowsOf(table, separator ?? separatorOf(table)), warnings }
}

function decode(file: Buffer): { text: string; warnings: string[] } {
  const [a, b] = file
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) {
    return { text: new TextDecoder(a === 0xff ? 'utf-16le' : 'utf-16be').decode(file), warnings: [] }
  }
  if (file.includes(0)) throw invalid('file', 'is neither an .xlsx workbook nor a CSV text', 'not_a_spreadsheet')
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(file), warnings: [] }
  } catch {
    const { name, characters } = isCodePage850(file) ? CODE_PAGE_850 : WINDOWS_1252
    return {
      text: file
        .toString('latin1')
        .replaceAll(/[\u0080-\u00ff]/g, (char) => characters[char.charCodeAt(0) - 0x80] ?? char),
      warnings: [`the file is not valid UTF-8, so it was read as ${name}: check the umlauts`],
    }
  }
}

/** Characters 0x80 to 0xff. `TextDecoder` of some Node versions decodes those of Windows-1252 as control characters. */
const WINDOWS_1252 = {
  name: 'Windows-1252',
  characters: '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ',
}
/** What Excel writes as "CSV (MS-DOS)". */
const CODE_PAGE_850 = {
  name: 'code page 850 (MS-DOS)',
  characters:
    'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤' +
    'ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0',
}

/** Bytes that Windows-1252 does not define; 0x81 is ü of code page 850. */
const NOT_1252 = /[\u0081\u008d\u008f\u0090\u009d]/
/** ä, ö, Ä, Ö and Ü of code page 850 beside small letters, where Windows-1252 would have „, ”, Ž, ™ and š. */
const UMLAUTS_OF_850 = /[a-z][\u0084\u0094][a-z]|(?<![a-z])[\u008e\u0099\u009a][a-z]/
/** ä, ö, ü, ß, Ä, Ö and Ü of Windows-1252. */
const UMLAUTS_OF_1252 = /[\u00e4\u00f6\u00fc\u00df\u00c4\u00d6\u00dc]/

function isCodePage850(file: Buffer): boolean {
  const text = file.toString('latin1')
  return NOT_1252.test(text) || (UMLAUTS_OF_850.test(text) && !UMLAUTS_OF_1252.test(text))
}

/** The separator that occurs most often in the first line, outside of quotation marks. */
function separatorOf(text: string): string {
  const counts = new Map<string, number>(SEPARATORS.map((separator) => [separator, 0]))
  let isQuoted = false
  for (const char of text.slice(0, ROW_LIMIT)) {
    if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && (char === '\n' || char === '\r') && [...counts.values()].some((n) => n > 0)) break
    else if (!isQuoted) counts.set(char, (counts.get(char) ?? -Infinity) + 1)
  }
  return SEPARATORS.reduce((best, separator) =>
    (counts.get(separator) ?? 0) > (counts.get(best) ?? 0) ? separator : best,
  )
}

async function* rowsOf(text: string, separator: string): AsyncGenerator<SheetRow> {
  let row = 0
  let empty = 0
  let width: number | undefined
  for (const cells of records(text, separator)) {
    row++
    if (cells && isEmptyRow(cells)) {
      if (++empty > EMPTY_ROWS_LIMIT) throw tooManyEmptyRows()
      continue
    }
    width ??= cells?.length ?? 0
    // A decimal comma without quotation marks splits a cell in two, which shifts all cells after it.
    const isOverfull = cells && cells.length > width && !isEmptyRow(cells.slice(width))
    yield cells
      ? { ...limitedRow(row, cells), ...(isOverfull && { fault: 'too_many_cells' as const }) }
      : { row, cells: [], fault: 'too_long' }
  }
}

/** The cells of each row; undefined for a row that is too long. Any line end outside of quotation marks ends a row. */
function* records(text: string, separator: string): Generator<string[] | undefined> {
  const special = new RegExp(`[\\r\\n${separator.replace(/[\\\]^-]/, '\\$&')}]`, 'g')
  const placeOf = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from
    return pattern.exec(text)?.index ?? text.length
  }
  let at = 0
  while (at < text.length) {
    const start = at
    const cells: string[] = []
    for (;;) {
      const quoted = text[at] === '"' ? quotedCell(text, at) : undefined
      const isQuoted = quoted && placeOf(special, quoted.end) === quoted.end
      const end = isQuoted ? quoted.end : placeOf(special, at)
      cells.push(unprotected(isQuoted ? quoted.cell : text.slice(at, end)))
      at = end
      if (text[at] !== separator || at - start > ROW_LIMIT) break
      at++
    }
    const isTooLong = at - start > ROW_LIMIT
    if (isTooLong) at = placeOf(/[\r\n]/g, at)
    yield isTooLong ? undefined : cells
    at += text.startsWith('\r\n', at) ? 2 : 1
  }
}

/** The cell in quotation marks that begins at `at`, and the place after it; undefined if the marks are not closed. */
function quotedCell(text: string, at: number): { cell: string; end: number } | undefined {
  const limit = at + ROW_LIMIT
  let from = at + 1
  let cell = ''
  for (;;) {
    const mark = text.indexOf('"', from)
    if (mark < 0 || mark > limit) return undefined
    cell += text.slice(from, mark)
    if (text[mark + 1] !== '"') return { cell, end: mark + 1 }
    cell += '"'
    from = mark + 2
  }
}

/** The text of `="…"`, with which programs protect long numbers from spreadsheets. */
const unprotected = (cell: string) => /^="([^"]*)"$/.exec(cell)?.[1] ?? cell
