'use client';
import { useState } from 'react';

export default function About() {
  const [open, setOpen] = useState(false);
  return (
    <main>
      <h1>About</h1>
      <button onClick={() => setOpen(true)}>{open ? 'Open' : 'Closed'}</button>
    </main>
  );
}
