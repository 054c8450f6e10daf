/** Replaces the text between two marks of a page. Throws if the page lacks one of them. */
export function replaceMarked(page: string, open: string, close: string, text: string): string {
  const from = page.indexOf(open) + open.length
  const to = page.indexOf(close, from)
  if (!page.includes(open) || to < 0) throw new Error(`the page lacks the marks ${open} … ${close}`)
  return page.slice(0, from) + text + page.slice(to)
}
