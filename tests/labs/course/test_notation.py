"""The notation names each thing once, in letters that it explains and colours that exist."""

from labs.course import diagram, notation, palette


def test_every_shape_uses_explained_letters():
    letters = {size.letter for size in notation.SIZES}
    for tensor in notation.TENSORS:
        if tensor.shape and not tensor.shape.startswith("as "):
            assert set(tensor.shape.split(",")) <= letters, tensor


def test_one_name_for_one_thing():
    codes = [name for tensor in notation.TENSORS for name in tensor.code.split(", ")]
    symbols = [name for tensor in notation.TENSORS for name in tensor.symbol.split(", ")]
    assert len(set(codes)) == len(codes)
    assert len(set(symbols)) == len(symbols)


def test_every_role_of_the_palette_is_used_and_known():
    assert {tensor.role for tensor in notation.TENSORS} == set(palette.ROLES)


def test_the_picture_of_the_block_agrees():
    """A symbol on an arrow of the picture has the shape and the colour that the notation gives it."""
    known = {tensor.symbol: tensor for tensor in notation.TENSORS}
    known |= {tensor.code: tensor for tensor in notation.TENSORS}
    roles = {node.name: node.role for node in diagram.NODES}
    for edge in diagram.EDGES:
        assert known[edge.symbol].shape == edge.shape, edge
        assert known[edge.symbol].role == (edge.role or roles[edge.source]), edge


def test_tables_have_a_row_for_everything():
    sizes, tensors = notation.sizes_markdown().splitlines(), notation.tensors_markdown().splitlines()
    assert len(sizes) == 2 + len(notation.SIZES)
    assert len(tensors) == 2 + len(notation.TENSORS)
    assert sizes[4] == "| $d$ | `D` | 8 | model width: numbers per position |"
    assert len({line.count("|") for line in tensors}) == 1
