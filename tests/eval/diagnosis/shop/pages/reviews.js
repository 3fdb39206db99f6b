globalThis.reviews = { average: (id) => 4 + id.length / 20 };
