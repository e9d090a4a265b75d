r"""ParSeq (Lai and Tetreault, 2018): three LSTMs, one above the other.

The first reads the words of a sentence, the second the sentences of a paragraph, the third the paragraphs of the
document; the last state of each is what the next one reads, and the last of all is classified:

.. math:: s_i = LSTM_1(w_{i1} \dots w_{in}), \quad p_j = LSTM_2(s_i \in j), \quad P = softmax(W LSTM_3(p_1 \dots p_m))

Simplified: blank lines part paragraphs, and a text without any is one paragraph; word vectors are not trained along.
"""

from dataclasses import dataclass

from torch import Tensor

from cohegraph.systems.neural import Batch, Network, SequenceModel, Tokens, Verdict
from cohegraph.systems.pieces import Recurrent


class _ParSeq(Network):
    def __init__(self, system: "ParSeq", width: int, outputs: int) -> None:
        super().__init__(system, width)
        self.sentence, self.paragraph, self.document = (Recurrent(system.hidden, system.hidden) for _ in range(3))
        self.verdict = Verdict(system.hidden, outputs, system.dropout)

    def forward(self, batch: Batch) -> Tensor:
        sentences = self.sentence.last(self.reader(batch.tokens), batch.sentences)
        paragraphs = self.paragraph.last(sentences, batch.paragraphs)
        return self.verdict(self.document.last(paragraphs, batch.paragraphs_of))


@dataclass(frozen=True)
class ParSeq(SequenceModel):
    """Words to sentences, sentences to paragraphs, paragraphs to the document."""

    name = "lai-tetreault-2018"
    title = "Lai & Tetreault (2018)"
    citation = "Lai and Tetreault (2018)"
    network_class = _ParSeq

    tokens: Tokens = "words"
