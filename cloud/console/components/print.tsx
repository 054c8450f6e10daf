/** A button that opens the print dialog. Browsers without scripts do not show it. */
export function PrintButton({ label }: { label: string }) {
  return (
    <button type="button" class="button main needs-script" data-print>
      {label}
    </button>
  )
}
