import Link from 'next/link';

export default function Page() {
  return (
    <main>
      <h1>Exported</h1>
      <Link href="/about">About</Link>
    </main>
  );
}
