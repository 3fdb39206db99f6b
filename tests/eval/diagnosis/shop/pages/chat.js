document.getElementById('chat').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = event.target.elements.text.value;
  const response = await fetch('/answers', { method: 'POST', body: JSON.stringify({ text }) });
  if (!response.ok) return;
  const answer = await response.json();
  document.getElementById('log').innerHTML += `<li>${answer.text}</li>`;
});
