/** The mark of untag: a `u`, the open tag, and above it the pin that lifts off. */
export function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <path d="M8 7v11a8 8 0 0 0 16 0V7" fill="none" stroke="currentColor" stroke-width="4.4" stroke-linecap="round" />
      <circle cx="16" cy="7.2" r="2.9" fill="#2fb6a8" />
    </svg>
  )
}
