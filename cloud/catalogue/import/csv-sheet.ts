import { Readable } from 'node:stream'
import { CsvError, parse, type Info } from 'csv-parse'
import { Failure, invalid } from '../../foundation/failure.ts'
import { yieldToEventLoop } from '../../operations/yield-to-event-loop.ts'
import { COLUMNS_LIMIT, EMPTY_ROWS_LIMIT, isEmptyRow, ROWS_AT_A_TIME, type Sheet, type SheetRow } from './sheet.ts'

/** Reads comma-separated text as spreadsheet programs save it, in several encodings and with three separators. */

const SEPARATORS = [',', ';', '\t'] as const
/** Maximum characters per row. A valid row has fewer than 2,000. */
const ROW_LIMIT = 100_000
/**
 * Number of characters that are parsed between two yields to the event loop. The number is small, because csv-parse is
 * slow for short rows of different lengths.
 */
const PIECE = 4 * 1024

/** Rows of a CSV file. Throws 400 for a binary file. */
export function readCsvSheet(file: Buffer): Sheet {
  const { text, warnings } = decode(file)
  return { rows: rowsOf(text), warnings }
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
    return { text: fromWindows1252(file), warnings: ['the file is not valid UTF-8, so it was read as Windows-1252'] }
  }
}

/** Characters 0x80 to 0x9f of Windows-1252. TextDecoder of some Node versions decodes them as control characters. */
const HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'

function fromWindows1252(file: Buffer): string {
  return file.toString('latin1').replaceAll(/[\u0080-\u009f]/g, (char) => HIGH[char.charCodeAt(0) - 0x80] ?? char)
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

/** Splits the text and lets the event loop run after each piece, because parsing 20 MB takes a second. */
async function* pieces(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += PIECE) {
    yield text.slice(at, at + PIECE)
    await yieldToEventLoop()
  }
}

async function* rowsOf(text: string): AsyncGenerator<SheetRow> {
  const parser = Readable.from(pieces(text)).pipe(
    parse({
      delimiter: separatorOf(text),
      relax_column_count: true,
      max_record_size: ROW_LIMIT,
      skip_empty_lines: true,
      info: true,
    }),
  )
  let empty = 0
  let width: number | undefined
  try {
    for await (const { record: cells, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
      const row = info.records + info.empty_lines
      if (row % ROWS_AT_A_TIME === 0) await yieldToEventLoop()
      if (isEmptyRow(cells)) {
        if (++empty > EMPTY_ROWS_LIMIT)
          throw invalid('file', `has over ${EMPTY_ROWS_LIMIT} empty rows; delete them and try again`, 'too_many_rows')
        continue
      }
      if (cells.length > COLUMNS_LIMIT && !isEmptyRow(cells.slice(COLUMNS_LIMIT))) {
        throw invalid('file', `row ${row} has over ${COLUMNS_LIMIT} columns`, 'too_many_columns')
      }
      width ??= cells.length
      // A decimal comma without quotation marks splits a cell in two, which shifts all cells after it.
      const isOverfull = cells.length > width && !isEmptyRow(cells.slice(width))
      yield { row, cells: cells.slice(0, COLUMNS_LIMIT), isOverfull }
    }
  } catch (error) {
    if (error instanceof Failure || !(error instanceof CsvError)) throw error
    throw invalid(
      'file',
      `cannot be read as CSV at row ${(error['records'] as number) + (error['empty_lines'] as number) + 1}: ${csvErrorText(error.code)}`,
      'damaged',
    )
  } finally {
    parser.destroy()
  }
}

function csvErrorText(code: string): string {
  if (code === 'CSV_QUOTE_NOT_CLOSED') return 'a quotation mark is not closed'
  if (code === 'CSV_MAX_RECORD_SIZE') return `it has over ${ROW_LIMIT} characters`
  return 'a quotation mark is not allowed here'
}
