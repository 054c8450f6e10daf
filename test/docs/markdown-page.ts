import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the project. */
export const ROOT = join(import.meta.dirname, '../..')

/** Paths of all Markdown pages below a folder of the project, for example `docs`. */
export function pagesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return pagesIn(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

/** One block of text: a paragraph or a list item, without line breaks. */
export interface Block {
  /** Line of the first word, from 1. */
  line: number
  text: string
}

/** The parts of a page that tests check. None contains code blocks. */
export interface MarkdownPage {
  lines: number
  headings: string[]
  /** Targets of links and pictures, as written. */
  links: string[]
  /** Valid names after `#` in a link to this page. */
  anchors: Set<string>
  paragraphs: Block[]
  cells: Block[]
  /** Lines of text outside tables. */
  proseLines: Block[]
}

/** Reads one page, by its path in the project. */
export function readPage(path: string): MarkdownPage {
  const lines = readFileSync(join(ROOT, path), 'utf8').trimEnd().split('\n')
  const prose = withoutCode(lines)
  const text = prose.map((line) => line.text).join('\n')
  const headings = prose.filter((line) => /^#{1,6} /.test(line.text)).map((line) => line.text)
  return {
    lines: lines.length,
    headings,
    links: linksOf(text),
    anchors: anchorsOf(headings, text),
    paragraphs: paragraphsOf(prose),
    cells: prose.filter(isRow).flatMap(cellsOf),
    proseLines: prose.filter((line) => !isRow(line)),
  }
}

/** Number of words in a text. */
export function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

function withoutCode(lines: string[]): Block[] {
  let isCode = false
  return lines.flatMap((text, index) => {
    const isFence = /^\s*```/.test(text)
    if (isFence) isCode = !isCode
    return isFence || isCode || /^ {4}\S/.test(text) ? [] : [{ line: index + 1, text }]
  })
}

const isRow = ({ text }: Block) => text.trimStart().startsWith('|')

function cellsOf({ line, text }: Block): Block[] {
  return text.split(/(?<!\\)\|/).map((cell) => ({ line, text: cell }))
}

function linksOf(text: string): string[] {
  const plain = text.replaceAll(/`[^`\n]*`/g, '')
  const inMarkdown = [...plain.matchAll(/\]\(([^)\s]+)\)/g)]
  const inHtml = [...plain.matchAll(/\b(?:src|href|srcset)="([^"\s]+)"/g)]
  return [...inMarkdown, ...inHtml].map((match) => match[1] ?? '')
}

/**
 * The anchors that GitHub creates for headings: lower case, hyphens between words, and a number after repeated ones.
 */
function anchorsOf(headings: string[], text: string): Set<string> {
  const anchors = new Set([...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map((match) => match[1] ?? ''))
  for (const heading of headings) {
    const anchor = heading
      .replace(/^#+ /, '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let name = anchor
    for (let n = 1; anchors.has(name); n++) name = `${anchor}-${n}`
    anchors.add(name)
  }
  return anchors
}

function paragraphsOf(prose: Block[]): Block[] {
  const paragraphs: Block[] = []
  let isOpen = false
  for (const block of prose) {
    const text = block.text.trim()
    const previous = paragraphs.at(-1)
    if (text === '' || text.startsWith('#') || isRow(block)) {
      isOpen = false
    } else if (isOpen && previous && !/^(?:[-*]|\d+\.) /.test(text)) {
      previous.text += ` ${text}`
    } else {
      paragraphs.push({ line: block.line, text })
      isOpen = true
    }
  }
  return paragraphs
}
