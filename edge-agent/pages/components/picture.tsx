/**
 * Small picture of a product, or a neutral placeholder if the agent has none. The product's name beside it has the same
 * meaning, so screen readers skip both. The page's script fills the slots (browser/picture.ts).
 */
export function Picture({ name, hash }: { name: string; hash: string }) {
  return (
    <span class="picture" data-slot="picture" hidden={name === ''} aria-hidden="true">
      <img data-slot="picture-image" src={hash === '' ? undefined : pictureAddress(hash)} alt="" hidden={hash === ''} />
      <svg data-slot="picture-none" viewBox="0 0 64 64" focusable="false" class={hash === '' ? '' : 'gone'}>
        <path d="M12 14 H36 L54 32 L32 54 L12 34 Z M22 24 v.1" />
      </svg>
    </span>
  )
}

function pictureAddress(hash: string): string {
  return `/pictures/${hash}.webp`
}
